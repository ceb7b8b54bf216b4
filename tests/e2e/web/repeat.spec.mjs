// After a restart a model that is told to go on repeats its command: the person is asked, by the
// repeat guard, and nothing happens a second time before that.
import { readFileSync } from 'node:fs';

import { callStep, crash, expect, gatedCommand, leaveUnknown, test } from './fixtures.mjs';

const effects = (stage, name) => readFileSync(stage.beside(`${name}-effect`), 'utf8');

test('tr_46 a command that is repeated after a restart runs again only when the person allows it', async ({
  desk,
  stage,
  problems,
}) => {
  await leaveUnknown(desk, 'deploy');
  problems.outage();
  await stage.kill();
  stage.write('deploy-gate');
  await stage.untilThere('deploy-effect');
  await stage.start();
  await desk.enter();
  await expect(desk.card('deploy-began')).toContainText('recovered');

  // Denied: the effect stays the only one.
  const again = () =>
    stage.model.push(callStep('shell', { command: gatedCommand(stage, 'deploy') }), {
      text: ['So be it.'],
    });
  await again();
  await desk.say('Continue');
  await expect(desk.approval).toContainText('The same call a second time?');
  await expect(desk.approval.getByLabel('The earlier one')).toContainText('ended');
  await expect(desk.approval.getByRole('button', { name: 'Allow for this session' })).toHaveCount(
    0,
  );
  expect(effects(stage, 'deploy')).toBe('happened\n');
  await desk.approval.getByRole('button', { name: 'Deny N' }).click();
  await expect(desk.log.getByText('So be it.')).toBeVisible();
  await desk.idle();
  expect(effects(stage, 'deploy')).toBe('happened\n');

  // Allowed: once more, and no third time.
  await again();
  await desk.say('Do it again');
  await expect(desk.approval).toContainText('second execution');
  await desk.approval.getByRole('button', { name: /Allow a second time/ }).click();
  await expect(desk.log.getByText('So be it.')).toHaveCount(2);
  await desk.idle();
  expect(effects(stage, 'deploy')).toBe('happened\nhappened\n');
});

test('tr_22 an unknown outcome stays open over compacting and going back', async ({
  desk,
  stage,
}) => {
  await leaveUnknown(desk, 'lost');
  await crash(desk, 'lost');
  await expect(desk.banner).toContainText('1 write');

  await stage.model.push({ text: ['A summary of what was said.'] });
  await desk.act('Compact the conversation');
  await expect(desk.log.getByText(/^Compacted:/)).toBeVisible();
  await expect(desk.banner).toContainText('1 write');

  await stage.model.push({ text: ['Noted.'] });
  await desk.say('A note');
  await expect(desk.log.getByText('Noted.')).toBeVisible();
  await desk.idle();
  await desk.log.getByText('A note', { exact: true }).hover();
  await desk.log.getByRole('button', { name: 'Go back to here' }).last().click();
  const dialog = desk.page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'Go back', exact: true }).click();
  await expect(dialog).toBeHidden();
  await expect(desk.composer).toHaveValue('A note');
  await expect(desk.log.getByText('Noted.')).toHaveCount(0);
  await expect(desk.log.getByText('Messages were taken back here')).toBeVisible();
  await expect(desk.banner).toContainText('1 write');
  expect(effects(stage, 'lost')).toBe('happened\n');
});
