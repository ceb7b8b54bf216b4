// The language on screen, switched live. `t` is the only way to a text.

import { en } from './en';
import { format, type Message, type Parameters } from './messages';
import { zhCN } from './zh-CN';

export type Key = keyof typeof en;
export type Language = 'en' | 'zh-CN';

const CATALOGUES: Record<Language, Record<Key, Message>> = { en, 'zh-CN': zhCN };

class CurrentLanguage {
  now = $state<Language>('en');
}
const language = new CurrentLanguage();

export function currentLanguage(): Language {
  return language.now;
}

/** `system` follows the browser's preference. */
export function setLanguage(wanted: string): void {
  const word = wanted === 'system' ? navigator.language : wanted;
  language.now = word.toLowerCase().startsWith('zh') ? 'zh-CN' : 'en';
  document.documentElement.lang = language.now;
}

export function t(key: Key, parameters: Parameters = {}): string {
  return format(CATALOGUES[language.now][key], language.now, parameters);
}

/** The text of a key that is made from a word on the wire; the word itself when it is new. */
export function word(prefix: string, value: string): string {
  const key = `${prefix}.${value}`;
  return key in en ? t(key as Key) : value;
}

/** A duration for a person, from milliseconds. */
export function duration(ms: number): string {
  if (ms < 1_000) {
    return t('time.ms', { n: Math.round(ms) });
  }
  const seconds = ms / 1_000;
  if (seconds < 60) {
    return t('time.s', { n: seconds < 10 ? seconds.toFixed(1) : Math.floor(seconds) });
  }
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) {
    return t('time.ms_s', { m: minutes, s: Math.floor(seconds % 60) });
  }
  return t('time.h', { h: Math.floor(minutes / 60), m: minutes % 60 });
}

/** What is left until something comes, in whole seconds; the last one is shown as 1. */
export function countdown(ms: number): string {
  const seconds = Math.max(1, Math.ceil(ms / 1_000));
  return seconds < 60 ? t('time.s', { n: seconds }) : duration(seconds * 1_000);
}

/** A time of day; with the day when it is not today. */
export function clock(at: number, now: number = Date.now()): string {
  const isToday = new Date(at).toDateString() === new Date(now).toDateString();
  return new Intl.DateTimeFormat(language.now, {
    hour: '2-digit',
    minute: '2-digit',
    ...(isToday ? {} : { month: 'short', day: 'numeric' }),
  }).format(at);
}

/** A count of tokens, short. */
export function count(n: number): string {
  return new Intl.NumberFormat(language.now, {
    notation: 'compact',
    maximumFractionDigits: 1,
  }).format(n);
}
