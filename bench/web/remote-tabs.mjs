// `npm run bench:remote-tabs [-- rounds]`: what a verification of 20 hosts with 50 tabs each costs the
// page's main thread, in a real browser on the real `holdfast web`. The list of tabs and the reads are
// made up here, so that no thousand sessions have to run; what the page does with them is its own.
// Floor: the same reply fetched and parsed by the same page, and nothing done with it.
//
// Guarantee: it fails when a verification with nothing new, or with one session changed, keeps the
// main thread busy for 10 ms or more beyond the floor at the median, or when the page logged an error.
/* global Event, requestIdleCallback -- in the page */
import assert from 'node:assert/strict';

import { chromium } from '@playwright/test';

import { Stage, until } from '../../tests/e2e/web/stage.mjs';

const ROUNDS = Number(process.argv[2] ?? 30);
const HOSTS = 20;
const TABS = 50;
const AIM_MS = 10;
const ARGS = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-quic'];

const hex = (n) => n.toString(16).padStart(32, '0');
const all = Array.from({ length: HOSTS * TABS }, (_, n) => ({
  n,
  hostId: hex(0xb0 + Math.floor(n / TABS)),
  sessionId: hex(0x1000 + n),
}));

const workspace = (n) => `/srv/project-${n % 5}`;

function state(running) {
  return {
    schemaVersion: 1,
    runtimeEpoch: hex(0xe),
    revision: running ? 2 : 1,
    phase: running ? 'executing' : 'idle',
    running,
    turnId: running ? 'turn' : '',
    turnStatus: running ? 'in_progress' : '',
    turnEventSeq: 0,
    pendingPrompt: false,
    cancelRequested: false,
    cancellable: running,
    backgroundJobs: 0,
    activity: running ? 'thinking' : '',
    unresolved: 0,
    outcome: '',
  };
}

/** All sessions; that one runs. */
function projection(revision, runs) {
  return {
    epoch: hex(0xe0),
    revision,
    sessions: all.map(({ n, hostId, sessionId }) => ({
      tabId: hex(n),
      scope: hostId,
      workspaceRoot: workspace(n),
      topicId: sessionId,
      sessionPath: `session-id:${sessionId}`,
      sessionGeneration: n + 1,
      open: true,
      remote: true,
      hostId,
      freshness: 'synced',
      state: state(n === runs),
    })),
    topics: all.map(({ n, hostId, sessionId }) => ({
      scope: hostId,
      workspaceRoot: workspace(n),
      topicId: sessionId,
      title: `Session ${n}`,
      status: n === runs ? 'thinking' : 'idle',
      backgroundJobs: 0,
      unresolved: 0,
      freshness: 'synced',
    })),
  };
}

const layout = {
  active: hex(0),
  tabs: all.map(({ n, hostId, sessionId }) => ({
    tabId: hex(n),
    sessionId,
    sessionPath: `session-id:${sessionId}`,
    sessionGeneration: n + 1,
    title: `Session ${n}`,
    workspaceRoot: workspace(n),
    model: 'demo/demo',
    mode: 'ask',
    draft: '',
    remote: true,
    hostId,
    problem: '',
  })),
};

const hosts = {
  hosts: Array.from({ length: HOSTS }, (_, n) => ({
    hostId: hex(0xb0 + n),
    name: `box-${n}`,
    way: { kind: 'direct', url: `https://box-${n}.example` },
    hasToken: true,
    state: 'connected',
    code: '',
    message: '',
    stale: 0,
    conflicts: 0,
    failures: 0,
  })),
};

function at(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)];
}

/** What the main thread does with a result: its script, and the style and layout that follow. */
const PARTS = ['ScriptDuration', 'RecalcStyleDuration', 'LayoutDuration'];

/** Milliseconds of that while `work` and what follows from it went on. */
async function busy(cdp, page, work) {
  const total = async () => {
    const { metrics } = await cdp.send('Performance.getMetrics');
    const parts = metrics.filter(({ name }) => PARTS.includes(name));
    return parts.reduce((sum, { value }) => sum + value, 0) * 1_000;
  };
  const before = await total();
  await work();
  await page.evaluate(
    () =>
      new Promise((resolve) => {
        requestAnimationFrame(() => requestIdleCallback(resolve));
      }),
  );
  return (await total()) - before;
}

const stage = await Stage.create();
const browser = await chromium.launch({
  executablePath: process.env.HOLDFAST_CHROMIUM ?? '/usr/bin/chromium',
  args: ARGS,
});
const errors = [];
try {
  const page = await browser.newPage();
  page.on('pageerror', (error) => errors.push(String(error)));
  let told = projection(1, -1);
  let reads = 0;
  const answer = (operation, reply) =>
    page.route(`**/app/${operation}`, (route) => route.fulfill({ json: reply() }));
  await answer('sync_runtime_state', () => {
    reads += 1;
    return told;
  });
  await answer('get_runtime_state_snapshot', () => told);
  await answer('get_layout', () => layout);
  await answer('list_hosts', () => hosts);
  await page.goto(stage.link);
  await until('the tabs', async () => (await page.getByRole('tab').count()) === HOSTS * TABS);
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('Performance.enable');

  const verify = async () => {
    const before = reads;
    await page.evaluate(() => window.dispatchEvent(new Event('focus')));
    await until('the read', () => reads > before);
  };
  const floor = () =>
    page.evaluate(async () => {
      const reply = await fetch('/app/sync_runtime_state', { method: 'POST', body: '{}' });
      await reply.json();
    });
  const figures = { floor: [], 'nothing new': [], 'one session changed': [] };
  for (let round = 0; round < ROUNDS; round += 1) {
    // What the round before left behind is cleared away in the first one.
    await busy(cdp, page, floor);
    figures.floor.push(await busy(cdp, page, floor));
    figures['nothing new'].push(await busy(cdp, page, verify));
    told = projection(told.revision + 1, round % 7);
    figures['one session changed'].push(await busy(cdp, page, verify));
  }
  const base = at(figures.floor, 0.5);
  console.log(`${HOSTS} hosts × ${TABS} tabs, ${ROUNDS} rounds; script, style and layout, ms`);
  for (const [name, values] of Object.entries(figures)) {
    const [median, p99] = [at(values, 0.5), at(values, 0.99)].map((ms) => ms.toFixed(1));
    console.log(`${name.padEnd(22)} median ${median.padStart(6)}   p99 ${p99.padStart(6)}`);
  }
  for (const name of ['nothing new', 'one session changed']) {
    const own = at(figures[name], 0.5) - base;
    assert.ok(own < AIM_MS, `${name}: ${own.toFixed(1)} ms beyond the floor, not under ${AIM_MS}`);
  }
  assert.deepEqual(errors, []);
} finally {
  await browser.close();
  await stage.close();
}
