// What an inspection rests on, in words.

import { t } from '../messages/language.svelte';
import type { Evidence } from '../port/contract';

export interface Fact {
  label: string;
  value: string;
  /** A digest or a number: shown in a fixed width. */
  code?: string;
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
      label: '',
      value: [
        alive ? t('recovery.process.alive') : t('recovery.process.ended'),
        by === '' ? '' : t('recovery.process.endedBy', { who: by }),
        exit === null ? t('recovery.process.noExit') : t('recovery.process.exit', { code: exit }),
      ]
        .filter((part) => part !== '')
        .join(' · '),
    },
  ];
  if (stragglers.length > 0) {
    const names = stragglers.map(({ name, pid }) => `${name} (${pid})`).join(', ');
    facts.push({ label: '', value: t('recovery.process.left', { n: stragglers.length, names }) });
  }
  return facts;
}

function digest(value: string): Omit<Fact, 'label'> {
  return value === ''
    ? { value: t('recovery.file.absent') }
    : { value: '', code: value.slice(0, 12) };
}

function present(before: string, after: string, now: string | null): Omit<Fact, 'label'> {
  if (now === null) {
    return { value: t('recovery.file.unreadable') };
  }
  const same =
    now === after
      ? t('recovery.file.sameAfter')
      : now === before
        ? t('recovery.file.sameBefore')
        : t('recovery.file.other');
  return { ...digest(now), value: now === '' ? t('recovery.file.absent') : same };
}
