// Finding the tests that are named after a rule, in Rust sources and in those of the pages.
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';

const LEFT_OUT = new Set(['.git', 'target', 'node_modules', 'dist', '.holdfast-tool']);

/** The files below some folders of the checkout, relative to it, with `/`. */
export function files(checkout, folders, extension) {
  const found = [];
  const visit = (folder) => {
    for (const entry of readdirSync(path.join(checkout, folder), { withFileTypes: true })) {
      const name = `${folder}/${entry.name}`;
      if (entry.isDirectory() && !LEFT_OUT.has(entry.name)) {
        visit(name);
      } else if (entry.isFile() && name.endsWith(extension)) {
        found.push(name);
      }
    }
  };
  folders.filter((folder) => existsSync(path.join(checkout, folder))).forEach(visit);
  return found.sort();
}

/** `tr_05_…` → `TR-05`, `c10_…` → `C10`, anything else → null. A space does for the last `_`. */
export function ruleOf(test) {
  const rule = /^(?:(tr|rs|sv)_|c)(\d\d)[_ ]/.exec(test);
  if (!rule) {
    return null;
  }
  return rule[1] ? `${rule[1].toUpperCase()}-${rule[2]}` : `C${rule[2]}`;
}

/** The tests of a script or page, `test('rs_22 …')`, that prove a rule: `[{ rule, test }]`. */
export function pageProofs(source) {
  return [...source.matchAll(/\btest\(\s*(['"`])(.*?)\1/g)].flatMap(([, , test]) => {
    const rule = ruleOf(test);
    return rule ? [{ rule, test }] : [];
  });
}

/** The tests of a Rust source that prove a rule: `[{ rule, test }]`. */
export function proofs(source) {
  const found = [];
  let marked = false;
  for (const raw of source.split('\n')) {
    const line = raw.trim();
    if (line.startsWith('#[test]') || line.startsWith('#[tokio::test')) {
      marked = true;
    } else if (marked && line.includes('fn ')) {
      marked = false;
      const test = line.slice(line.indexOf('fn ') + 3).split(/[(<]/)[0];
      const rule = ruleOf(test);
      if (rule) {
        found.push({ rule, test });
      }
    }
  }
  return found;
}
