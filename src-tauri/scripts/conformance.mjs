// `npm run conformance`: writes docs/conformance.md, the table of which test proves which rule, from
// tests/acceptance/rules.json and the names of the tests. `--check` only says whether it is up to
// date. The acceptance tests compare the same things by themselves.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { files, pageProofs, proofs } from './proofs.mjs';
import { root } from './programs.mjs';
import { Failure, runMain, say } from './terminal.mjs';

const TABLE = path.join(root, 'docs', 'conformance.md');

const HEAD = `# Conformance

Which test proves which rule. The contract's rules are numbered (TR: tool recovery, SV: supervisor,
RS: runtime state, C: cases from the field), and a test's name begins with the rule that it proves.

Written by \`npm run conformance\` from tests/acceptance/rules.json and the names of the tests; a test
fails when it is out of date, or when a rule that is in force has no test. "not in force yet" is a
rule that this version doesn't claim to keep.

| rule | what it says | test | file |
| --- | --- | --- | --- |
`;

const compare = (a, b) => (a < b ? -1 : Number(a > b));

function table() {
  const rules = JSON.parse(
    readFileSync(path.join(root, 'tests', 'acceptance', 'rules.json'), 'utf8'),
  );
  const found = files(root, ['src-tauri', 'tests', 'bench', 'ui'], '.rs').flatMap((file) =>
    proofs(readFileSync(path.join(root, file), 'utf8')).map((proof) => ({ ...proof, file })),
  );
  for (const ending of ['.test.ts', '.test.mjs', '.spec.mjs', '.spec.ts']) {
    for (const file of files(root, ['src-tauri', 'tests', 'ui'], ending)) {
      const own = pageProofs(readFileSync(path.join(root, file), 'utf8'));
      found.push(...own.map((proof) => ({ ...proof, file })));
    }
  }
  const rows = rules.flatMap(({ rule, title, inForce }) => {
    const own = found
      .filter((proof) => proof.rule === rule)
      .sort((a, b) => compare(a.test, b.test) || compare(a.file, b.file));
    if (own.length === 0) {
      return [`| ${rule} | ${title} | ${inForce ? '**missing**' : 'not in force yet'} | |`];
    }
    return own.map(
      ({ test, file }, index) =>
        `| ${rule} | ${index === 0 ? title : ''} | \`${test}\` | ${file} |`,
    );
  });
  const without = rules.filter(
    ({ rule, inForce }) => inForce && !found.some((proof) => proof.rule === rule),
  );
  return { text: `${HEAD}${rows.join('\n')}\n`, without, count: found.length };
}

await runMain(() => {
  const { text, without, count } = table();
  if (process.argv.includes('--check')) {
    const current = existsSync(TABLE) ? readFileSync(TABLE, 'utf8').replaceAll('\r\n', '\n') : '';
    if (current !== text) {
      throw new Failure(
        'docs/conformance.md is not up to date.',
        'run `npm run conformance` and commit the result.',
      );
    }
    say(`docs/conformance.md is up to date: ${count} tests.`);
  } else {
    writeFileSync(TABLE, text);
    say(`docs/conformance.md written: ${count} tests.`);
  }
  if (without.length > 0) {
    say(`In force, without a test: ${without.map(({ rule }) => rule).join(', ')}`);
  }
});
