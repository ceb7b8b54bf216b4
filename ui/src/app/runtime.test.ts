// What indicators read off the projection, and nothing else.

import { describe, expect, test } from 'vitest';

import type { ProjectView, RuntimeSession, Topic, TopicStatus } from '../port/contract';
import { RuntimeMirror } from './runtime.svelte';

function topic(id: string, status: TopicStatus, changes: Partial<Topic> = {}): Topic {
  return {
    scope: 'local',
    workspaceRoot: '/w',
    topicId: id,
    title: id,
    status,
    backgroundJobs: 0,
    unresolved: 0,
    freshness: 'synced',
    ...changes,
  };
}

function inTab(tabId: string, topicId: string): RuntimeSession {
  return { tabId, topicId, scope: 'local', freshness: 'synced' } as RuntimeSession;
}

function mirror(topics: Topic[], sessions: RuntimeSession[] = [], failed = false): RuntimeMirror {
  const made = new RuntimeMirror();
  made.view = { topics, sessions, failed, empty: false };
  return made;
}

const at = (sessionId: string, hostId = '') => ({ hostId, sessionId });
const project = {
  hostId: '',
  workspaceRoot: '/w',
  name: 'w',
  sessions: [],
} as unknown as ProjectView;

describe('RS-03, RS-15, RS-17, RS-25', () => {
  test('rs_03 a session that the projection does not name shows nothing, not even that it rests', () => {
    const runtime = mirror([topic('one', 'idle')]);
    expect(runtime.indicator(at('one'))?.status).toBe('idle');
    expect(runtime.indicator(at('another'))).toBeNull();
    expect(new RuntimeMirror().indicator(at('one'))).toBeNull();
  });

  test('rs_17 a session in three tabs is one row of its project, and its jobs count once', () => {
    const jobs = topic('one', 'background_jobs', { backgroundJobs: 2, unresolved: 1 });
    const elsewhere = topic('two', 'thinking', { workspaceRoot: '/other', backgroundJobs: 5 });
    const tabs = ['a', 'b', 'c'].map((tab) => inTab(tab, 'one'));
    const sum = mirror([jobs, elsewhere], tabs).project(project);
    expect(sum).toEqual({
      status: 'background_jobs',
      backgroundJobs: 2,
      unresolved: 1,
      confirmed: true,
    });
  });

  test('rs_17 the same id on two machines is two sessions, each with its own facts', () => {
    const here = topic('one', 'thinking', { backgroundJobs: 1 });
    const there = topic('one', 'error', { scope: 'h1', freshness: 'unknown', unresolved: 3 });
    const runtime = mirror([here, there], [inTab('a', 'one')]);
    expect(runtime.indicator(at('one'))).toMatchObject({ status: 'thinking', confirmed: true });
    expect(runtime.indicator(at('one', 'h1'))).toMatchObject({ status: 'error', confirmed: false });
    expect(runtime.indicator(at('one', 'h2'))).toBeNull();
    expect(runtime.project(project)).toMatchObject({ status: 'thinking', unresolved: 0 });
    const elsewhere = runtime.project({ ...project, hostId: 'h1' });
    expect(elsewhere).toMatchObject({ status: 'error', unresolved: 3, confirmed: false });
  });

  test('rs_15 of a project’s sessions the one that asks comes first, then the order of states', () => {
    const of = (...statuses: TopicStatus[]) =>
      mirror(statuses.map((status, n) => topic(String(n), status))).project(project).status;
    expect(of('finishing', 'waiting_confirmation', 'error')).toBe('waiting_confirmation');
    expect(of('error', 'thinking', 'finishing')).toBe('finishing');
    expect(of('idle', 'background_jobs', 'error')).toBe('background_jobs');
    expect(of()).toBe('idle');
  });

  test('rs_25 while nothing is confirmed the facts stay, and no indicator says that they hold', () => {
    const facts = [topic('one', 'streaming')];
    const runtime = mirror(facts, [inTab('a', 'one')], true);
    expect(runtime.indicator(at('one'))).toMatchObject({ status: 'streaming', confirmed: false });
    expect(runtime.project(project).confirmed).toBe(false);
    const stale = { ...inTab('a', 'one'), freshness: 'unknown' } as RuntimeSession;
    expect(mirror(facts, [stale]).indicator(at('one'))?.confirmed).toBe(false);
  });
});
