// What nobody knows: host and supervisor are killed in a command, and a person decides.
import { existsSync } from 'node:fs';
import path from 'node:path';

import { callStep, crash, expect, leaveUnknown, test } from './fixtures.mjs';

test('tr_33 an unknown outcome blocks writes until it was inspected and confirmed; then the work goes on', async ({
  desk,
  stage,
}) => {
  await leaveUnknown(desk, 'lost');
  await crash(desk, 'lost');
  await expect(desk.banner).toContainText('1 write with an unknown outcome blocks further writes');
  const card = desk.card('lost-began');
  await expect(desk.stateOf(card)).toHaveText('outcome unknown');

  // A write is refused while it is unknown, and nothing of it happens.
  await stage.model.push(callStep('write_file', { path: 'early.txt', content: 'x' }));
  await desk.say('Write early');
  await expect(desk.card('early.txt')).toContainText('blocked');
  await desk.idle();
  expect(existsSync(path.join(stage.folder, 'lost', 'early.txt'))).toBe(false);

  await desk.banner.getByRole('button', { name: 'Review' }).click();
  await expect(desk.panel).toContainText('Not inspected yet');
  const confirm = desk.panel.getByRole('button', { name: 'It happened' });
  const reject = desk.panel.getByRole('button', { name: 'Don’t retry' });
  await expect(confirm).toBeDisabled();
  await expect(reject).toBeDisabled();
  await expect(desk.panel.getByRole('button', { name: 'Run it again' })).toHaveCount(0);
  await desk.panel.getByRole('button', { name: 'Inspect' }).click();
  await expect(desk.panel).toContainText('Nothing is proven');
  await expect(desk.panel.getByText('Stored arguments')).toBeVisible();

  // Rejecting a retry lifts nothing.
  await reject.click();
  await expect(desk.panel).toContainText('You said: no retry. It still blocks');
  await expect(desk.panel.getByRole('listitem')).toHaveCount(1);
  const { sessions } = await stage.call('get_runtime_state_snapshot');
  expect(sessions[0].state.unresolved).toBe(1);

  await confirm.click();
  await expect(desk.panel.getByText('Nothing blocks any more')).toBeVisible();
  await expect(desk.stateOf(card)).toHaveText('confirmed by you');
  await expect(desk.banner).toHaveCount(0);

  await stage.model.push(callStep('write_file', { path: 'late.txt', content: 'x' }));
  await desk.panel.getByRole('button', { name: 'Continue' }).click();
  await expect(desk.panel).toBeHidden();
  await desk.allowOnce('late.txt');
  await desk.idle();
  expect(existsSync(path.join(stage.folder, 'lost', 'late.txt'))).toBe(true);
});

test('tr_34 going on without knowing lifts the barrier and never looks like success', async ({
  desk,
}) => {
  await leaveUnknown(desk, 'gone');
  await crash(desk, 'gone');
  await desk.banner.getByRole('button', { name: 'Review' }).click();
  await desk.panel.getByRole('button', { name: 'Go on without knowing' }).click();
  await expect(desk.panel.getByText('Nothing blocks any more')).toBeVisible();
  await expect(desk.panel).toContainText('Confirmed 0 · dismissed 1');
  const card = desk.card('gone-began');
  await expect(desk.stateOf(card)).toHaveText('dismissed by you');
  await desk.page.keyboard.press('Escape');
  await expect(desk.panel).toBeHidden();
  await expect(desk.banner).toHaveCount(0);
});

test('c32 a process that is still alive is said to be, and nothing can be decided meanwhile', async ({
  desk,
  stage,
  problems,
}) => {
  await leaveUnknown(desk, 'alive');
  problems.outage();
  await stage.kill();
  stage.killSupervisors();
  await stage.start();
  await desk.enter();
  await desk.banner.getByRole('button', { name: 'Review' }).click();
  await desk.panel.getByRole('button', { name: 'Inspect' }).click();
  await expect(desk.panel).toContainText('Still running');
  await desk.panel.getByRole('button', { name: 'It happened' }).click();
  await expect(desk.panel.getByRole('alert')).toBeVisible();
  await expect(desk.panel.getByRole('listitem').first()).toBeVisible();
  const { sessions } = await stage.call('get_runtime_state_snapshot');
  expect(sessions[0].state.unresolved).toBe(1);

  stage.write('alive-gate');
  await stage.untilThere('alive-effect');
  await expect(async () => {
    await desk.panel.getByRole('button', { name: 'Inspect again' }).click();
    await expect(desk.panel).toContainText('Ended', { timeout: 500 });
  }).toPass();
  await desk.panel.getByRole('button', { name: 'It happened' }).click();
  await expect(desk.panel.getByText('Nothing blocks any more')).toBeVisible();
});

test('tr_40 a reply of recovery that comes after the session was switched is dropped', async ({
  desk,
  page,
}) => {
  await leaveUnknown(desk, 'first');
  await leaveUnknown(desk, 'second');
  await crash(desk, 'first', 'second');
  await desk.tabs.nth(0).click();
  await desk.banner.getByRole('button', { name: 'Review' }).click();
  await expect(desk.panel).toContainText('first-began');

  // The reply of this one inspection is held back until the other session is on screen.
  let letGo;
  const held = new Promise((resolve) => {
    letGo = resolve;
  });
  let arrived;
  const asked = new Promise((resolve) => {
    arrived = resolve;
  });
  await page.route(
    '**/app/resolve_tool_recovery_for_tab',
    async (route) => {
      const response = await route.fetch();
      arrived();
      await held;
      await route.fulfill({ response });
    },
    { times: 1 },
  );
  await desk.panel.getByRole('button', { name: 'Inspect' }).click();
  await asked;
  await desk.tabs.nth(1).click();
  await expect(desk.panel).toBeHidden();
  await desk.banner.getByRole('button', { name: 'Review' }).click();
  await expect(desk.panel).toContainText('second-began');
  const late = page.waitForResponse('**/app/resolve_tool_recovery_for_tab');
  letGo();
  await (await late).finished();

  // What the person does next here is answered on the session that is on screen.
  await desk.panel.getByRole('button', { name: 'Read again' }).click();
  await expect(desk.panel).not.toContainText('first-began');
  await expect(desk.panel).toContainText('Not inspected yet');
  await expect(desk.panel.getByRole('button', { name: 'Inspect' })).toBeEnabled();
  // The inspection itself was done; its own session has it.
  await desk.tabs.nth(0).click();
  await desk.banner.getByRole('button', { name: 'Review' }).click();
  await expect(desk.panel).toContainText('first-began');
  await expect(desk.panel).toContainText('Nothing is proven');
});
