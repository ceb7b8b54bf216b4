// `npm run bench:tool-recovery [rounds]`: what a person waits for in the recovery panel, measured in a
// real browser against the real `holdfast web`, beside a floor: the same operation asked for over bare
// HTTP, without a page.
//
// Guarantee: it also judges. It fails when a step ends in another state than it must, when a retry is
// offered where it is off or enabled where it is unsafe, when a late reply overwrites the session that
// is on screen, or when the page threw or logged an error.
import assert from 'node:assert/strict';

import { chromium } from '@playwright/test';

import { callStep, gatedCommand } from '../../tests/e2e/model.mjs';
import { Stage } from '../../tests/e2e/web/stage.mjs';

const ROUNDS = Number(process.argv[2] ?? 5);
const ARGS = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-quic'];
const HELD = '**/app/resolve_tool_recovery_for_tab';

/** Times of each step, milliseconds: in the page, and its floor. */
const times = new Map();

function note(step, page, floor) {
  const own = times.get(step) ?? { page: [], floor: [] };
  own.page.push(page);
  own.floor.push(floor);
  times.set(step, own);
}

function at(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

async function timed(work) {
  const began = performance.now();
  const value = await work();
  return { value, ms: performance.now() - began };
}

/** Presses what is named and measures in the page itself until the words stand where they must. */
function press(page, { within, button, place, words }) {
  return page.evaluate(
    (step) =>
      new Promise((resolve, reject) => {
        const element = [...document.querySelectorAll(`${step.within} button`)].find(
          (one) =>
            !one.disabled &&
            (one.getAttribute('aria-label') ?? one.innerText).startsWith(step.button),
        );
        if (!element) {
          reject(new Error(`There is no button ${step.button} that can be pressed.`));
          return;
        }
        const done = () => {
          const text = document.querySelector(step.place)?.innerText ?? '';
          return text.includes(step.words);
        };
        const late = setTimeout(
          () => reject(new Error(`${step.button}: ${step.words} never came.`)),
          20_000,
        );
        const began = performance.now();
        const observer = new MutationObserver(() => {
          if (done()) {
            observer.disconnect();
            clearTimeout(late);
            resolve(performance.now() - began);
          }
        });
        observer.observe(document.body, { childList: true, subtree: true, characterData: true });
        element.click();
      }),
    { within, button, place, words },
  );
}

/** A session with a command whose outcome will be unknown; answers its tab. */
async function leave(stage, name) {
  const folder = stage.project(name);
  await stage.call('open_project', { path: folder });
  const tab = await stage.call('new_session', { workspaceRoot: folder });
  await stage.model.push(callStep('shell', { command: gatedCommand(stage, name) }));
  const { tabId } = tab;
  await stage.call('submit', { tabId, input: `Run ${name}`, submissionId: name });
  for (;;) {
    const [question] = await stage.call('pending_prompts', { tabId });
    if (question) {
      const { id, generation } = question.approval;
      await stage.call('approve', {
        tabId,
        id,
        generation,
        allow: true,
        scope: 'once',
        reason: '',
      });
      break;
    }
    await new Promise((resolve) => {
      setTimeout(resolve, 10);
    });
  }
  await stage.untilThere(`${name}-began`);
  return tab;
}

/** The same actions as another client asks for them: the floor of each step. */
async function bare(stage, tabId) {
  const read = await timed(() => stage.call('get_tool_recovery_for_tab', { tabId }));
  const act = (snapshot, action) =>
    timed(() =>
      stage.call('resolve_tool_recovery_for_tab', {
        tabId,
        request: {
          sessionPath: snapshot.sessionPath,
          runtimeEpoch: snapshot.runtimeEpoch,
          revision: snapshot.revision,
          attemptId: read.value.calls[0].identity.attempt_id,
          inspectionId: action === 'inspect' ? '' : snapshot.calls[0].inspection_id,
          action,
        },
      }),
    );
  const inspect = await act(read.value, 'inspect');
  assert.equal(inspect.value.calls[0].inspection_state, 'unknown');
  const confirm = await act(inspect.value, 'confirm');
  assert.deepEqual(confirm.value.calls, []);
  const go = await timed(() =>
    stage.call('submit', { tabId, input: 'Go on', submissionId: `floor-${tabId}` }),
  );
  assert.ok(go.value.turnId);
  return { read: read.ms, inspect: inspect.ms, confirm: confirm.ms, go: go.ms };
}

/** An inspection whose reply comes when another session is on screen changes nothing there. */
async function lateReply(page, first, second) {
  let letGo;
  const held = new Promise((resolve) => {
    letGo = resolve;
  });
  let arrived;
  const asked = new Promise((resolve) => {
    arrived = resolve;
  });
  await page.route(
    HELD,
    async (route) => {
      const response = await route.fetch();
      arrived();
      await held;
      await route.fulfill({ response });
    },
    { times: 1 },
  );
  const panel = page.locator('aside[aria-label="Unknown outcomes"]');
  const review = page.locator('.banner').getByRole('button', { name: 'Review' });
  await panel.getByRole('button', { name: 'Inspect' }).click();
  await asked;
  await page.getByRole('tab', { name: second }).click();
  await review.click();
  await panel.getByText(second).first().waitFor();
  const late = page.waitForResponse(HELD);
  letGo();
  await (await late).finished();
  await page.evaluate(
    () =>
      new Promise((done) => {
        requestAnimationFrame(() => requestAnimationFrame(done));
      }),
  );
  const text = await panel.innerText();
  assert.ok(text.includes('Not inspected yet'), 'the late inspection was shown in another session');
  assert.ok(!text.includes(`${first}-began`), 'the late inspection brought another session’s call');
  await panel.getByRole('button', { name: 'Close' }).click();
}

async function round(browser, number, allowed) {
  const stage = await Stage.create({ env: allowed ? { REASONIX_TOOL_RECOVERY_RETRY: '1' } : {} });
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    locale: 'en-US',
    reducedMotion: 'reduce',
  });
  try {
    const names = ['shown', 'other', 'floor'];
    const tabs = [];
    for (const name of names) {
      tabs.push(await leave(stage, name));
    }
    await stage.kill();
    stage.killSupervisors();
    for (const name of names) {
      stage.write(`${name}-gate`);
      await stage.untilThere(`${name}-effect`);
    }
    await stage.start();

    const problems = [];
    const page = await context.newPage();
    page.on('pageerror', (error) => problems.push(error.message));
    page.on('console', (line) => line.type() === 'error' && problems.push(line.text()));
    await page.goto(stage.link);
    await page.getByRole('tab', { name: 'shown' }).click();
    await page.locator('.banner').waitFor();

    const floor = await bare(stage, tabs[2].tabId);
    const panel = 'aside[aria-label="Unknown outcomes"]';
    const open = await press(page, {
      within: '.banner',
      button: 'Review',
      place: panel,
      words: 'Not inspected yet',
    });
    note('open the panel', open, floor.read);

    const again = page.locator(panel).getByRole('button', { name: 'Run it again' });
    await lateReply(page, 'shown', 'other');
    await page.getByRole('tab', { name: 'shown' }).click();
    await page.locator('.banner').getByRole('button', { name: 'Review' }).click();
    await page.locator(panel).getByText('Nothing is proven').waitFor();

    // The other session's is not inspected yet.
    await page.getByRole('tab', { name: 'other' }).click();
    await page.locator('.banner').getByRole('button', { name: 'Review' }).click();
    await page.locator(panel).getByText('Not inspected yet').waitFor();
    const inspect = await press(page, {
      within: panel,
      button: 'Inspect',
      place: panel,
      words: 'Nothing is proven',
    });
    note('inspect', inspect, floor.inspect);
    if (allowed) {
      assert.equal(await again.count(), 1, 'a retry is shown where the host allows it');
      assert.ok(await again.isDisabled(), 'an unsafe retry is disabled');
      assert.match(await page.locator(panel).innerText(), /Can’t be run again: it is not proven/);
    } else {
      assert.equal(await again.count(), 0, 'no retry is shown where it is off');
    }
    note(
      'confirm',
      await press(page, {
        within: panel,
        button: 'It happened',
        place: panel,
        words: 'Nothing blocks any more',
      }),
      floor.confirm,
    );
    note(
      'continue',
      await press(page, {
        within: panel,
        button: 'Continue',
        place: '[role=log]',
        words: 'Go on with the task',
      }),
      floor.go,
    );
    assert.deepEqual(problems, [], 'the page threw or logged an error');
    process.stderr.write(`round ${number}: retry ${allowed ? 'allowed' : 'off'}\n`);
  } finally {
    await context.close();
    await stage.close();
  }
}

const browser = await chromium.launch({
  executablePath: process.env.HOLDFAST_CHROMIUM ?? '/usr/bin/chromium',
  args: ARGS,
});
try {
  for (let number = 1; number <= ROUNDS; number += 1) {
    // Every second host allows retries.
    await round(browser, number, number % 2 === 0);
  }
} finally {
  await browser.close();
}

const figure = (values) => `${at(values, 0.5).toFixed(1)} ms (most ${at(values, 1).toFixed(1)})`;
console.log(`\n${ROUNDS} rounds; medians`);
console.log('| step | in the page | floor: the same over bare HTTP |');
console.log('| --- | --- | --- |');
for (const [step, { page, floor }] of times) {
  console.log(`| ${step} | ${figure(page)} | ${figure(floor)} |`);
}
console.log(
  'Late reply dropped, retry absent where off and disabled where unsafe, no error in the page.',
);
