// The list of other machines, and what the page's model does with it.

import { describe, expect, test } from 'vitest';

import { HOST_SHOTS } from '../gallery/hosts';
import type { HostList, HostView, RuntimeSession } from '../port/contract';
import { createFakePort, type FakePort } from '../port/fake';
import { PortError, type Port } from '../port/port';
import { canStop, isLegacy, snapshotOf, turnOf, unresolvedOf } from '../runtime/observed';
import { Desk } from './desk.svelte';
import { Hosts } from './hosts.svelte';

function view(changes: Partial<HostView> = {}): HostView {
  return { ...HOST_SHOTS['host-connected']!().scene.hosts![0]!, ...changes };
}

/** A port whose lists of hosts the test hands out one by one. */
function listing() {
  const asked: { resolve: (list: HostList) => void; reject: (error: Error) => void }[] = [];
  const port = {
    listHosts: () => new Promise((resolve, reject) => asked.push({ resolve, reject })),
    saveHost: () => Promise.resolve({ hosts: [view({ name: 'saved' })] }),
    removeHost: () => Promise.resolve({ hosts: [] }),
  } as unknown as Port;
  return { asked, hosts: new Hosts(port, () => 1_000) };
}

/** Lets every promise that can go on go on, and what is painted once a frame. */
function settled(): Promise<void> {
  return new Promise((done) => setTimeout(done, 40));
}

describe('RS-25, RS-36: the list', () => {
  test('reads are shared, and calls during one make one more behind it', async () => {
    const { asked, hosts } = listing();
    const all = Promise.all([hosts.load(), hosts.load(), hosts.load()]);
    expect(asked).toHaveLength(1);
    asked[0]?.resolve({ hosts: [view({ name: 'old' })] });
    await settled();
    expect(asked).toHaveLength(2);
    asked[1]?.resolve({ hosts: [view({ name: 'new' })] });
    await all;
    expect(hosts.list.map((host) => host.name)).toEqual(['new']);
    expect(asked).toHaveLength(2);
  });

  test('the wait for the next try ends at a time of this page’s clock', async () => {
    const { asked, hosts } = listing();
    void hosts.load();
    asked[0]?.resolve({
      hosts: [view({ state: 'waiting', retryInMs: 5_000 }), view({ hostId: 'x', retryInMs: null })],
    });
    await settled();
    expect(hosts.list.map((host) => host.retryAt)).toEqual([6_000, null]);
  });

  test('a read that began before a change does not undo it; one that fails clears nothing', async () => {
    const { asked, hosts } = listing();
    void hosts.load();
    await hosts.save({ name: 'saved', way: { kind: 'direct', url: 'https://h:1' } });
    asked[0]?.resolve({ hosts: [view({ name: 'older' })] });
    await settled();
    expect(hosts.list.map((host) => host.name)).toEqual(['saved']);
    void hosts.load();
    asked[1]?.reject(new Error('down'));
    await settled();
    expect(hosts.list.map((host) => host.name)).toEqual(['saved']);
    await hosts.remove('any');
    expect(hosts.list).toEqual([]);
  });

  test('only a machine that is known and not connected is away; this one never is', async () => {
    const { asked, hosts } = listing();
    void hosts.load();
    const states = ['connected', 'connecting', 'waiting', 'refused'] as const;
    asked[0]?.resolve({ hosts: states.map((state) => view({ hostId: state, state })) });
    await settled();
    expect(states.filter((state) => hosts.isAway(state))).toEqual(states.slice(1));
    expect([hosts.isAway(''), hosts.isAway('gone')]).toEqual([false, false]);
  });
});

/** A page over a scene whose host and tabs the test changes. */
async function page(shot: string) {
  const { scene } = HOST_SHOTS[shot]!();
  const port: FakePort = createFakePort(scene);
  const desk = new Desk(port);
  await desk.start();
  await settled();
  port.asked.length = 0;
  const far = scene.layout.tabs.find((tab) => tab.hostId !== '')!;
  const named = (operation: string) => port.asked.filter((one) => one.operation === operation);
  const updated = () =>
    port.send({
      event: 'remote-tab:updated',
      payload: { hostId: far.hostId, tabIds: [far.tabId] },
    });
  return { scene, port, desk, far, named, updated };
}

describe('RS-17, RS-25, RS-36: the page', () => {
  test('rs_36 send and stop are off while the machine is away, and this machine’s tabs go on', async () => {
    const { desk, scene } = await page('host-waiting');
    expect(desk.canAct).toBe(false);
    expect(desk.runtime.view.failed).toBe(false);
    desk.select(scene.layout.tabs[0]!.tabId);
    expect(desk.canAct).toBe(true);
    desk.stop();
  });

  test('rs_36 what the list says counts before the projection has heard of it', async () => {
    const { scene, desk, updated } = await page('host-connected');
    expect(desk.canAct).toBe(true);
    scene.hosts = [view({ state: 'waiting', retryInMs: 4_000 })];
    updated();
    await settled();
    expect(desk.session?.freshness).toBe('synced');
    expect(desk.canAct).toBe(false);
    desk.stop();
  });

  test('rs_25 after a failed read the page knows when the next one is due, each time anew', async () => {
    const { scene, desk } = await page('host-connected');
    const down = new PortError('unreachable', 'down');
    scene.refused = { sync_runtime_state: down, get_runtime_state_snapshot: down };
    desk.verify();
    await settled();
    const first = desk.runtime.retryAt ?? 0;
    expect(first - Date.now()).toBeGreaterThan(4_000);
    desk.verify();
    await settled();
    expect((desk.runtime.retryAt ?? 0) - first).toBeGreaterThan(4_000);
    desk.stop();
  });

  test('rs_25 an updated connection is verified, and what is on screen is not read again', async () => {
    const { desk, named, updated } = await page('host-connected');
    updated();
    await settled();
    expect(named('sync_runtime_state')).toHaveLength(1);
    expect(named('list_hosts')).toHaveLength(1);
    expect(named('transcript_snapshot')).toHaveLength(0);
    desk.stop();
  });

  test('rs_25 a conversation that could not be read is asked for once its machine is back', async () => {
    const { scene, desk, far, named, port, updated } = await page('host-waiting');
    scene.refused.transcript_snapshot = new PortError('host_disconnected', 'away');
    await desk.conversation?.load();
    expect(desk.conversation?.problem).toBe('away');
    port.asked.length = 0;
    updated();
    await settled();
    expect(named('transcript_snapshot')).toHaveLength(0);
    delete scene.refused.transcript_snapshot;
    scene.hosts = [view()];
    updated();
    await settled();
    expect(named('transcript_snapshot')).toEqual([
      { operation: 'transcript_snapshot', request: { tabId: far.tabId } },
    ]);
    expect(named('inbox')).toHaveLength(1);
    expect(desk.conversation?.problem).toBe('');
    desk.stop();
  });

  test('rs_29 a gap that names a session is that session’s alone; one that names none is everybody’s', async () => {
    const { desk, far, named, port, scene } = await page('host-connected');
    desk.select(scene.layout.tabs[0]!.tabId);
    await settled();
    port.asked.length = 0;
    const gap = (sessionId: string) =>
      port.send({
        event: 'session:frames',
        payload: { frames: [{ id: 'e.9', frame: { sessionId, turnId: '', kind: 'gap' } }] },
      });
    const read = () =>
      named('transcript_snapshot').map((one) => (one.request as { tabId: string }).tabId);
    gap(far.sessionId);
    await settled();
    expect(read()).toEqual([far.tabId]);
    gap('');
    await settled();
    expect(read().slice(1).sort()).toEqual([far.tabId, scene.layout.tabs[0]!.tabId].sort());
    desk.stop();
  });

  test('rs_17 what is asked of a session names its machine', async () => {
    const { desk, far, named } = await page('host-connected');
    const elsewhere = { hostId: 'another', sessionId: far.sessionId };
    // The same id on another machine is another session: the tab that is open is not it.
    await desk.open(elsewhere);
    await desk.change(far, { title: 'T' });
    await desk.newSession(far);
    await desk.copy(far);
    await desk.remove(far);
    const of = (operation: string) => named(operation)[0]?.request;
    expect(of('open_session')).toEqual(elsewhere);
    const place = { hostId: far.hostId, sessionId: far.sessionId };
    expect(of('change_session')).toEqual({ ...place, title: 'T' });
    expect(of('fork_session')).toEqual(place);
    expect(of('delete_session')).toEqual(place);
    expect(of('new_session')).toMatchObject({
      hostId: far.hostId,
      workspaceRoot: far.workspaceRoot,
    });
    desk.stop();
  });

  test('rs_14 Stop of a machine that tells less is asked of it, and names no turn', async () => {
    const { desk, far, named } = await page('host-legacy');
    await desk.cancel();
    expect(named('cancel')[0]?.request).toEqual({ tabId: far.tabId, turnId: '' });
    desk.stop();
  });
});

describe('RS-14: what may be read off a state that tells less', () => {
  const legacy = (more: object) =>
    ({ schemaVersion: 0, phase: 'executing', running: true, ...more }) as RuntimeSession['state'];

  test('rs_14 what it does not name is unknown, and Stop is refused only where it says so', () => {
    expect(isLegacy(legacy({}))).toBe(true);
    expect(snapshotOf(legacy({}))).toBeUndefined();
    expect([turnOf(legacy({})), unresolvedOf(legacy({}))]).toEqual(['', 0]);
    expect(canStop(legacy({}))).toBe(true);
    expect(canStop(legacy({ cancellable: true }))).toBe(true);
    expect(canStop(legacy({ cancellable: false }))).toBe(false);
    expect(canStop(legacy({ cancelRequested: true }))).toBe(false);
    expect(canStop(legacy({ running: false, phase: 'idle' }))).toBe(false);
    expect(canStop(undefined)).toBe(false);
  });
});
