// From nothing to a mended program: the demo.
import { spawnSync } from 'node:child_process';

import { expect, test } from './fixtures.mjs';

test.use({ configured: false });

test('first run: the demo is tried, answered and done, and the page has nothing to complain of', async ({
  desk,
  stage,
}) => {
  await desk.page.getByRole('button', { name: 'Try the demo' }).click();
  await expect(desk.composer).not.toHaveValue('');
  const layout = await stage.call('get_layout');
  const check = () => spawnSync('sh', ['check.sh'], { cwd: layout.tabs[0].workspaceRoot }).status;
  expect(check(), 'the sample begins with a bug').not.toBe(0);

  await desk.send.click();
  await expect(desk.composer).toHaveValue('');
  // Text arrives piece by piece, and stands in the conversation.
  await expect(desk.page.locator('.tail article.live')).toBeVisible();
  await desk.allowOnce('check.sh');
  const edit = desk.approval.filter({ hasText: 'Make this change?' });
  await expect(edit.locator('tr.add').first()).toBeVisible();
  await expect(edit.locator('tr.del').first()).toBeVisible();
  expect(check(), 'nothing is changed before the answer').not.toBe(0);
  await desk.allow.click();
  await expect(edit).toHaveCount(0);
  await desk.allowOnce('check.sh');

  await desk.idle();
  expect(check(), 'the program is mended').toBe(0);
  await expect(desk.cards.filter({ hasText: 'done' }).first()).toBeVisible();
  const { sessions } = await stage.call('get_runtime_state_snapshot');
  expect(sessions[0].state).toMatchObject({
    phase: 'idle',
    turnStatus: 'completed',
    unresolved: 0,
  });
});
