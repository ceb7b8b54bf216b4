// Recovery in a real browser, from the crash to the work that goes on, on a host that allows retries.
// That the page threw nothing and logged no error is part of every test here (fixtures.mjs).
import { crash, expect, leaveUnknown, test } from './fixtures.mjs';

test.describe('a host that allows retries', () => {
  test.use({ env: { REASONIX_TOOL_RECOVERY_RETRY: '1' } });

  test('tr_35 an unsafe retry is a disabled button with its reason; inspect, confirm and continue', async ({
    desk,
    stage,
  }) => {
    await leaveUnknown(desk, 'unsafe');
    await crash(desk, 'unsafe');
    await desk.banner.getByRole('button', { name: 'Review' }).click();
    const again = desk.panel.getByRole('button', { name: 'Run it again' });
    await expect(again).toBeDisabled();
    await expect(again).toHaveAccessibleDescription('Can’t be run again: inspect it first');
    await desk.panel.getByRole('button', { name: 'Inspect' }).click();
    await expect(desk.panel).toContainText('Nothing is proven');
    // A command whose exit nobody recorded is never proven absent.
    await expect(again).toBeDisabled();
    await expect(again).toHaveAccessibleDescription(/^Can’t be run again: it is not proven/);
    // Neither is it run when the page is got around.
    const [tab] = (await stage.call('get_layout')).tabs;
    const now = await stage.call('get_tool_recovery_for_tab', { tabId: tab.tabId });
    expect(now.retryEnabled).toBe(true);
    const refused = await stage.call('resolve_tool_recovery_for_tab', {
      tabId: tab.tabId,
      request: {
        sessionPath: now.sessionPath,
        runtimeEpoch: now.runtimeEpoch,
        revision: now.revision,
        attemptId: now.calls[0].identity.attempt_id,
        inspectionId: now.calls[0].inspection_id,
        action: 'retry',
      },
    });
    expect(refused.code).toBe('not_fenced');

    await desk.panel.getByRole('button', { name: 'It happened' }).click();
    await expect(desk.panel.getByText('Nothing blocks any more')).toBeVisible();
    await desk.panel.getByRole('button', { name: 'Continue' }).click();
    await expect(desk.panel).toBeHidden();
    await expect(desk.log.getByText(/^Go on with the task/)).toBeVisible();
    await desk.idle();
  });
});

test('tr_35 on a host that does not allow retries there is no such button, before or after an inspection', async ({
  desk,
  stage,
}) => {
  await leaveUnknown(desk, 'off');
  await crash(desk, 'off');
  await desk.banner.getByRole('button', { name: 'Review' }).click();
  await expect(desk.panel).toContainText('Not inspected yet');
  await expect(desk.panel.getByRole('button', { name: 'Run it again' })).toHaveCount(0);
  await expect(desk.panel).not.toContainText('Can’t be run again');
  await desk.panel.getByRole('button', { name: 'Inspect' }).click();
  await expect(desk.panel).toContainText('Nothing is proven');
  await expect(desk.panel.getByRole('button', { name: 'Run it again' })).toHaveCount(0);
  const [tab] = (await stage.call('get_layout')).tabs;
  const { retryEnabled } = await stage.call('get_tool_recovery_for_tab', { tabId: tab.tabId });
  expect(retryEnabled).toBe(false);
});
