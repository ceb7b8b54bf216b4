// Form of the messages, and how one is made from its parts.

/** A text, or its forms by number: `one` where the language has it, else `other`. */
export type Message = string | { one?: string; other: string };
export type Messages = Record<string, Message>;
export type Parameters = Record<string, string | number>;

/** Fills `{name}`; the plural form follows the parameter `n`. */
export function format(message: Message, language: string, parameters: Parameters): string {
  let text: string;
  if (typeof message === 'string') {
    text = message;
  } else {
    const rule = new Intl.PluralRules(language).select(Number(parameters.n ?? 0));
    text = rule === 'one' ? (message.one ?? message.other) : message.other;
  }
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => {
    const value = parameters[name];
    return value === undefined ? whole : String(value);
  });
}
