// What an inspection rests on, in words, and what it proves and what it does not.

import type { Mark } from '../kit/StateMark.svelte';
import { t, word, type Key } from '../messages/language.svelte';
import type { CallRecord, Evidence } from '../port/contract';

export interface Fact {
  label: string;
  value: string;
  /** A digest or a number: shown in a fixed width. */
  code?: string;
  /** What the fact says at a glance. */
  mark?: Mark;
}

export function factsOf(evidence: Evidence | null): Fact[] {
  if (evidence === null || evidence === 'none') {
    return [{ label: '', value: t('recovery.evidence.none') }];
  }
  if (evidence.file !== undefined) {
    const { before, after, now } = evidence.file;
    return [
      { label: t('recovery.file.before'), ...digest(before) },
      { label: t('recovery.file.after'), ...digest(after) },
      { label: t('recovery.file.now'), ...present(before, after, now) },
    ];
  }
  const { alive, ended_by: by, exit, stragglers = [] } = evidence.process;
  const facts: Fact[] = [
    {
      label: t('recovery.process.label'),
      value: alive ? t('recovery.process.alive') : t('recovery.process.ended'),
      mark: alive ? 'running' : 'stopped',
    },
  ];
  if (!alive || by !== '') {
    facts.push({
      label: t('recovery.process.byLabel'),
      value: by === '' ? t('recovery.process.notKnown') : word('recovery.by', by),
    });
  }
  if (!alive || exit !== null) {
    facts.push({
      label: t('recovery.process.exitLabel'),
      ...(exit === null
        ? { value: t('recovery.process.notKnown') }
        : { value: '', code: String(exit) }),
    });
  }
  stragglers.forEach((straggler, at) =>
    facts.push({
      label: at === 0 ? t('recovery.process.leftLabel') : '',
      value: t('recovery.process.one', { name: straggler.name, pid: straggler.pid }),
    }),
  );
  return facts;
}

/** What the inspection proves and what not; empty where the host's own words have to tell it. */
export function meaningOf(call: CallRecord): string {
  const key = meaningKey(call);
  return key === null ? call.inspection_summary : t(key);
}

function meaningKey({
  inspection_state: found,
  inspection_evidence: seen,
}: CallRecord): Key | null {
  if (isAlive(seen)) {
    return 'recovery.proves.alive';
  }
  switch (found) {
    case 'present':
      return 'recovery.proves.present';
    case 'postcondition_satisfied':
      return 'recovery.proves.satisfied';
    case 'absent_fenced':
      return 'recovery.proves.absent';
    case 'unknown':
    case null:
      if (seen === null || seen === 'none') {
        return null;
      }
      // A file that could not be read is told by the host, with its reason.
      return seen.file === undefined
        ? 'recovery.proves.ended'
        : seen.file.now === null
          ? null
          : 'recovery.proves.otherFile';
  }
}

/** Something of the attempt was alive at the inspection. */
export function isAlive(evidence: Evidence | null): boolean {
  return (
    evidence !== null &&
    evidence !== 'none' &&
    evidence.process !== undefined &&
    (evidence.process.alive || (evidence.process.stragglers ?? []).length > 0)
  );
}

function digest(value: string): Omit<Fact, 'label'> {
  return value === ''
    ? { value: t('recovery.file.absent') }
    : { value: '', code: value.slice(0, 12) };
}

function present(before: string, after: string, now: string | null): Omit<Fact, 'label'> {
  if (now === null) {
    return { value: t('recovery.file.unreadable'), mark: 'unknown' };
  }
  const [same, mark]: [string, Mark] =
    now === after
      ? [t('recovery.file.sameAfter'), 'done']
      : now === before
        ? [t('recovery.file.sameBefore'), 'stopped']
        : [t('recovery.file.other'), 'unknown'];
  return {
    ...digest(now),
    value: now === '' ? `${t('recovery.file.absent')}, ${same}` : same,
    mark,
  };
}
