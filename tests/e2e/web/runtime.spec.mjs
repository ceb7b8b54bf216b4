// What a session does, as the page shows it, while a test decides what the page hears.
import { callStep, expect, gatedCommand, test } from './fixtures.mjs';
import { copyOf } from './frames.mjs';

test.use({ framed: true });

/** A session whose turn waits for the model's next piece, after it has begun to write. */
async function writing(desk, stage, name, gate) {
  await desk.openFolder(stage.project(name));
  await stage.model.push({ text: ['A word, ', 'and another.'], gate: { name: gate, after: 1 } });
  await desk.say(`Write in ${name}`);
  await expect(desk.tabs.last().getByRole('img', { name: 'writing' })).toBeVisible();
}

/** Every session of the projection and its row, put into another state. */
function become(phase, status, changes = {}) {
  return (projection) => {
    for (const session of projection.sessions) {
      Object.assign(session.state, { phase, activity: '', ...changes });
      session.state.revision += 1;
    }
    for (const topic of projection.topics) {
      topic.status = status;
    }
  };
}

test('rs_15 finishing is a still mark without Stop, and then it is over', async ({
  desk,
  stage,
}) => {
  await writing(desk, stage, 'ends', 'ends');
  await expect(desk.stop).toBeVisible();
  const { frames } = stage;
  frames.insert(become('finishing', 'finishing', { cancellable: false }));
  await expect(desk.status).toContainText('Storing the end of this turn');
  const mark = desk.tabs.last().getByRole('img', { name: 'finishing' });
  await expect(mark).toBeVisible();
  await expect(mark).not.toHaveClass(/turns/);
  await expect(desk.status.locator('.turns')).toHaveCount(0);
  await expect(desk.stop).toHaveCount(0);
  // The row of the session shows the same: there is one source.
  const row = desk.projects.getByRole('region', { name: 'ends' });
  await expect(row.getByRole('img', { name: 'finishing' }).first()).toBeVisible();

  await stage.model.release('ends');
  await desk.idle();
  await expect(desk.log.getByText('A word, and another.')).toBeVisible();
  await expect(desk.tabs.last().getByRole('img')).toHaveCount(0);
  await expect(row.getByRole('img')).toHaveCount(0);
});

test('rs_15 stopping is shown until the end, and no second Stop is sent', async ({
  desk,
  stage,
  page,
}) => {
  await desk.openFolder(stage.project('stubborn'));
  // It does not end when it is asked to.
  const command = `trap '' TERM; ${gatedCommand(stage, 'stubborn')}`;
  await stage.model.push(callStep('shell', { command }));
  await desk.say('Run it');
  await desk.allowOnce('stubborn-began');
  await stage.untilThere('stubborn-began');
  let stops = 0;
  page.on('request', (request) => {
    stops += request.url().endsWith('/app/cancel') ? 1 : 0;
  });
  await desk.stop.click();
  const stopping = page.getByRole('button', { name: 'Stopping…', exact: true });
  await expect(stopping).toBeDisabled();
  await expect(desk.status).toContainText('Stopping…');
  await expect(desk.tabs.first().getByRole('img', { name: 'stopping…' })).toBeVisible();
  await desk.composer.press('Escape');
  await desk.composer.press('Escape');
  await expect(stopping).toHaveCount(0);
  await desk.idle();
  expect(stops).toBe(1);
});

test('rs_15 a paused queue is a still mark, and what waited in it runs when it goes on', async ({
  desk,
  stage,
}) => {
  await writing(desk, stage, 'queue', 'queue');
  const [{ tabId }] = stage.frames.told.sessions.filter(({ open }) => open);
  await stage.model.push({ text: ['That was queued.'] });
  await stage.call('enqueue', {
    tabId,
    input: 'And then this',
    intent: 'followup',
    idempotencyKey: 'one',
  });
  await stage.call('pause_inbox', { tabId });
  await stage.model.release('queue');
  await expect(desk.status).toContainText('The queue is paused');
  const mark = desk.tabs.first().getByRole('img', { name: 'paused' });
  await expect(mark).toBeVisible();
  await expect(mark).not.toHaveClass(/turns/);
  await expect(desk.stop).toHaveCount(0);

  await stage.call('resume_inbox', { tabId });
  await desk.idle();
  await expect(desk.log.getByText('And then this', { exact: true })).toHaveCount(1);
  await expect(desk.log.getByText('That was queued.')).toHaveCount(1);
  await expect(desk.tabs.first().getByRole('img')).toHaveCount(0);
});

test('rs_15 jobs are a number beside their session, also when another one is selected, until they end', async ({
  desk,
  stage,
}) => {
  await desk.openFolder(stage.project('server'));
  const gate = stage.beside('server-gate');
  const wait = `until [ -e '${gate}' ] || [ ! -d '${stage.data}' ]; do sleep 0.05; done`;
  await stage.model.push(
    callStep('shell', { command: `(${wait}) > /dev/null 2>&1 & echo is up` }),
    { text: ['It is up.'] },
  );
  await desk.say('Start it');
  await desk.allowOnce('is up');
  await expect(desk.log.getByText('It is up.')).toBeVisible();
  await expect(desk.status).toContainText('1 command still running');
  await expect(desk.stop).toHaveCount(0);
  const tab = desk.tabs.first();
  await expect(tab.locator('svg.jobs')).toBeVisible();
  await expect(tab.locator('.turns')).toHaveCount(0);

  await desk.openFolder(stage.project('elsewhere'));
  await expect(desk.status).toContainText('Ready');
  const row = desk.projects.getByRole('region', { name: 'server' });
  await expect(tab.locator('svg.jobs')).toBeVisible();
  await expect(row.locator('.count')).toHaveText('1');

  stage.write('server-gate');
  await expect(tab.locator('svg.jobs')).toHaveCount(0);
  await expect(row.locator('.count')).toHaveCount(0);
});

test('rs_19 while sessions are switched each one shows its own state and never that of another', async ({
  desk,
  stage,
}) => {
  await writing(desk, stage, 'first', 'first');
  await desk.openFolder(stage.project('second'));
  const [first, second] = [desk.tabs.nth(0), desk.tabs.nth(1)];
  // Whatever was painted in between counts too.
  await desk.page.evaluate(() => {
    window.wrong = [];
    const look = () => {
      const tabs = [...document.querySelectorAll('[role=tab]')];
      const selected = tabs.find((tab) => tab.getAttribute('aria-selected') === 'true');
      const line = document.querySelector('.status-line .now')?.textContent ?? '';
      const wanted = selected === tabs[0] ? 'Writing' : 'Ready';
      if (selected && line.trim() !== '' && !line.includes(wanted)) {
        window.wrong.push(`${selected.textContent.trim()}: ${line.trim()}`);
      }
      if (!window.enough) {
        requestAnimationFrame(look);
      }
    };
    requestAnimationFrame(look);
  });
  for (let round = 0; round < 5; round += 1) {
    await first.click();
    await expect(desk.status).toContainText('Writing');
    await expect(desk.stop).toBeVisible();
    await second.click();
    await expect(desk.status).toContainText('Ready');
    await expect(desk.stop).toHaveCount(0);
    await expect(first.getByRole('img', { name: 'writing' })).toBeVisible();
    await expect(second.getByRole('img')).toHaveCount(0);
  }
  const wrong = await desk.page.evaluate(() => {
    window.enough = true;
    return window.wrong;
  });
  expect(wrong).toEqual([]);
  await stage.model.release('first');
  await expect(first.getByRole('img')).toHaveCount(0);
});

test('c14 revisions 7, 5, 7 the same, 7 another, 8: taken, late, known, one new read, taken', async ({
  desk,
  stage,
}) => {
  await desk.openFolder(stage.project('order'));
  await desk.idle();
  const { frames } = stage;
  const five = copyOf(frames.told);
  const status = (words) => expect(desk.status).toContainText(words);
  frames.insert(become('executing', 'thinking', { running: true, activity: 'thinking' }));
  await status('Thinking');
  frames.insert(become('executing', 'streaming', { running: true, activity: 'streaming' }));
  await status('Writing');
  const seven = copyOf(frames.told);
  const { reads } = frames;

  // Late: the earlier revision said that nothing runs.
  frames.send(five);
  frames.send(seven);
  // The marker shows that both were taken in; it changes nothing that is read anew.
  frames.insert((next) => {
    next.topics[0].title = 'A marker';
  });
  await expect(desk.tabs.first()).toContainText('A marker');
  await status('Writing');
  expect(frames.reads, 'neither asks for a read').toBe(reads);

  const other = copyOf(frames.told);
  become('finishing', 'finishing')(other);
  frames.send(other);
  frames.send(other);
  await expect.poll(() => frames.reads).toBeGreaterThan(reads);
  await status('Writing');
  frames.insert(become('idle', 'idle', { running: false }));
  await status('Ready');
  // Two conflicts at once are one read; a second one may have begun before the first was answered.
  expect(frames.reads - reads).toBeLessThanOrEqual(2);
  await expect(desk.unsynced).toHaveCount(0);
});

test('c13 a proxy that silently stops forwarding: unconfirmed within 45 s, then the truth without a reload', async ({
  page,
  stage,
  problems,
  desk,
}) => {
  // Time is the test's own from here on.
  await page.clock.install();
  await page.reload();
  await desk.openFolder(stage.project('silent'));
  await stage.model.push(callStep('shell', { command: gatedCommand(stage, 'silent') }), {
    text: ['That is done.'],
  });
  await desk.say('Run it');
  await desk.allowOnce('silent-began');
  await stage.untilThere('silent-began');
  await expect(desk.stateOf(desk.card('silent-began'))).toHaveText('running');
  await page.evaluate(() => {
    window.sameDocument = true;
  });

  problems.outage();
  stage.frames.silence();
  stage.write('silent-gate');
  await stage.untilThere('silent-effect');
  await page.clock.runFor(45_000);
  await expect(desk.unsynced).toBeVisible();
  await desk.composer.fill('sent later');
  await expect(desk.send).toBeDisabled();
  await expect(desk.stop.and(page.locator(':enabled'))).toHaveCount(0);

  stage.frames.speak();
  await page.clock.runFor(60_000);
  await expect(desk.unsynced).toHaveCount(0);
  await desk.idle();
  await expect(desk.stateOf(desk.card('silent-began'))).toHaveText('done');
  await expect(desk.log.getByText('That is done.')).toBeVisible();
  await expect(desk.composer).toHaveValue('sent later');
  await expect(desk.send).toBeEnabled();
  expect(await page.evaluate(() => window.sameDocument), 'no reload').toBe(true);
});
