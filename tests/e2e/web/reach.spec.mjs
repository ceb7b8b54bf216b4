// Every screen by Tab alone: what can be pressed or filled in is reached, in the order in which it
// stands there, and a dialog lets the focus out to nothing behind it.
import { callStep, expect, gatedCommand, test } from './fixtures.mjs';

/** Tabs around once, within the open dialog where there is one, and tells what that reached. */
async function tabOrder(page) {
  await page.evaluate(() => {
    const scope = [...document.querySelectorAll('dialog[open]')].at(-1) ?? document.body;
    // From the beginning.
    const before = scope.getAttribute('tabindex');
    scope.tabIndex = -1;
    scope.focus();
    if (before === null) {
      scope.removeAttribute('tabindex');
    }
    if (window.reached === undefined) {
      document.addEventListener('focusin', (event) => window.reached.push(event.target));
    }
    window.reached = [];
  });
  for (;;) {
    await page.keyboard.press('Tab');
    const isRound = await page.evaluate(() => {
      const { activeElement } = document;
      return (
        activeElement === document.body ||
        activeElement.matches('dialog') ||
        window.reached.indexOf(activeElement) < window.reached.length - 1
      );
    });
    if (isRound) {
      break;
    }
  }
  return page.evaluate(() => {
    const scope = [...document.querySelectorAll('dialog[open]')].at(-1) ?? document;
    const everything = [
      ...scope.querySelectorAll(
        'button, input, textarea, select, a[href], summary, [tabindex="0"], [contenteditable]',
      ),
    ].filter(
      (element) =>
        !element.matches(':disabled, [tabindex="-1"]') &&
        element.checkVisibility({ checkVisibilityCSS: true }),
    );
    const nameOf = (element) =>
      element.getAttribute('aria-label') ||
      element.labels?.[0]?.textContent.trim() ||
      element.textContent.trim() ||
      element.placeholder ||
      element.tagName;
    const reached = window.reached.filter(
      (element, at, all) => all.indexOf(element) === at && !element.matches('body, dialog'),
    );
    const follows = (one, other) =>
      Boolean(one.compareDocumentPosition(other) & one.DOCUMENT_POSITION_FOLLOWING);
    return {
      names: reached.map(nameOf),
      missed: everything.filter((element) => !reached.includes(element)).map(nameOf),
      /** Outside of the dialog that is open. */
      escaped: reached.filter((element) => !scope.contains(element)).map(nameOf),
      outOfOrder: reached
        .filter((element, at) => at > 0 && !follows(reached[at - 1], element))
        .map(nameOf),
    };
  });
}

/** Judges the screen as it is; `names` are some that must be among what is reached. */
async function judge(page, screen, names) {
  const found = await tabOrder(page);
  expect(found, screen).toMatchObject({ missed: [], escaped: [], outOfOrder: [] });
  for (const name of names) {
    expect(found.names.join('\n'), screen).toContain(name);
  }
}

test('first run, the folder dialog, and every page of the settings', async ({ desk }) => {
  const { page } = desk;
  await judge(page, 'first run', ['Try the demo', 'Connect a model', 'Open a folder', 'Settings']);

  await page.getByRole('button', { name: 'Open a folder' }).first().click();
  const folder = page.getByRole('dialog', { name: 'Open a folder' });
  await folder.getByRole('textbox').fill('/somewhere');
  await judge(page, 'the folder dialog', ['Path of the folder', 'Cancel', 'Open']);
  await page.keyboard.press('Escape');
  await expect(folder).toBeHidden();

  await page.keyboard.press('Control+,');
  const settings = page.getByRole('dialog', { name: 'Settings' });
  const screens = {
    General: ['Theme', 'Language', 'Font size'],
    Agent: ['Permissions of new sessions', 'Model of new sessions'],
    Providers: ['scripted', 'Add a provider'],
    About: ['Close'],
  };
  for (const [name, controls] of Object.entries(screens)) {
    await settings.getByRole('button', { name, exact: true }).click();
    await expect(settings.getByRole('heading', { name })).toBeVisible();
    if (name === 'Providers') {
      await expect(settings.getByRole('listitem').first()).toBeVisible();
    }
    await judge(page, `settings, ${name}`, ['General', 'About', 'Close', ...controls]);
  }
  await settings.getByRole('button', { name: 'Providers' }).click();
  await settings.getByRole('button', { name: 'Add a provider' }).click();
  await judge(page, 'a provider', ['Name', 'Address', 'Models', 'Key', 'Test', 'Save']);
});

test('a session: a question, its refusal with a reason, and open cards', async ({
  desk,
  stage,
}) => {
  const { page } = desk;
  await desk.openFolder(stage.project('keys', { 'a.txt': 'one\n' }));
  await judge(page, 'an empty session', ['Message', 'Model', 'Permission mode', 'Search sessions']);
  await stage.model.push(
    callStep('shell', { command: 'printf out; printf more >&2' }, [
      'See `this`:\n\n```sh\nls\n```',
    ]),
    callStep('write_file', { path: 'k.txt', content: 'k\n' }),
  );
  await desk.say('Do it');
  await desk.allowOnce('printf');
  await expect(desk.approval).toContainText('k.txt');
  for (const card of await desk.cards.all()) {
    const head = card.getByRole('button').first();
    if ((await head.getAttribute('aria-expanded')) === 'false') {
      await head.click();
    }
  }
  const names = ['Allow once', 'Allow for this session', 'Deny', 'Copy code', 'Run', 'Stop'];
  await judge(page, 'a question', names);
  await desk.approval.getByRole('button', { name: 'Deny with a reason' }).click();
  await judge(page, 'a refusal', ['Why not?', 'Deny', 'Cancel']);
});

test('a command that is left over, and a session to be moved to the trash', async ({
  desk,
  stage,
}) => {
  const { page } = desk;
  await desk.openFolder(stage.project('left'));
  await stage.model.push(callStep('shell', { command: `(${gatedCommand(stage, 'left')}) &` }), {
    text: ['It is left over.'],
  });
  await desk.say('Leave it');
  await desk.allowOnce('left-began');
  await expect(desk.log.getByText('It is left over.')).toBeVisible();
  await desk.status.getByRole('button', { name: 'Show' }).click();
  const jobs = page.getByRole('dialog', { name: 'Commands still running' });
  await expect(jobs.getByRole('button', { name: 'Stop' })).toBeVisible();
  await judge(page, 'the commands', ['Close', 'Stop']);
  await page.keyboard.press('Escape');

  const more = desk.projects.getByRole('button', { name: /^More for/ }).last();
  await more.focus();
  await page.keyboard.press('Enter');
  await desk.page.getByRole('menuitem', { name: 'Move to trash' }).click();
  await expect(page.getByRole('dialog', { name: /to the trash/ })).toBeVisible();
  await judge(page, 'the question about the trash', ['Cancel', 'Move to trash']);
});

test('an unknown outcome: the page that is not synced, the banner, the panel', async ({
  desk,
  stage,
  problems,
}) => {
  const { page } = desk;
  await desk.openFolder(stage.project('unknown'));
  await stage.model.push(callStep('shell', { command: gatedCommand(stage, 'reach') }));
  await desk.say('Run it');
  await desk.allowOnce('reach-began');
  await stage.untilThere('reach-began');
  problems.outage();
  await stage.kill();
  await expect(desk.unsynced).toBeVisible();
  await judge(page, 'not synced', ['Now']);
  stage.killSupervisors();
  stage.write('reach-gate');
  await stage.untilThere('reach-effect');
  await stage.start();
  await desk.enter();
  await expect(desk.banner).toBeVisible();
  await judge(page, 'the barrier', ['Review']);
  await desk.banner.getByRole('button', { name: 'Review' }).click();
  await expect(desk.panel).toContainText('Not inspected yet');
  await judge(page, 'the panel', ['Read again', 'Close', 'Inspect', 'Go on without knowing']);
  await desk.panel.getByRole('button', { name: 'Inspect' }).click();
  await expect(desk.panel).toContainText('Nothing is proven');
  const names = ['Inspect again', 'Stored arguments', 'Don’t retry', 'It happened'];
  await judge(page, 'the panel after an inspection', names);
});

test('a menu and the palette are walked by arrows, round and round', async ({ desk, stage }) => {
  const { page } = desk;
  await desk.openFolder(stage.project('arrows'));
  const mode = page.getByRole('button', { name: 'Permission mode' });
  await mode.focus();
  await page.keyboard.press('Enter');
  const items = page.getByRole('menuitem');
  await expect(items.first()).toBeFocused();
  const count = await items.count();
  expect(count).toBe(4);
  for (let at = 1; at <= count; at += 1) {
    await page.keyboard.press('ArrowDown');
    await expect(items.nth(at % count)).toBeFocused();
  }
  await page.keyboard.press('Escape');
  await expect(mode).toBeFocused();

  await page.keyboard.press('Control+k');
  const options = page.getByRole('option');
  const all = await options.count();
  expect(all).toBeGreaterThan(6);
  for (let at = 0; at < all; at += 1) {
    await expect(options.nth(at)).toHaveAttribute('aria-selected', 'true');
    await page.keyboard.press('ArrowDown');
  }
});
