// What the scripts say in a terminal: headings, plain lines, colour where it is wanted, and
// failures that end with what to do.

const colourful = process.stdout.isTTY === true && !process.env.NO_COLOR;

const paint = (code) => (text) => (colourful ? `\x1b[${code}m${text}\x1b[0m` : text);

export const bold = paint('1');
export const dim = paint('2');
export const red = paint('31');
export const green = paint('32');
export const yellow = paint('33');
export const cyan = paint('36');

/** A failure that a person can act on: what happened, and what to do. */
export class Failure extends Error {
  constructor(what, advice) {
    super(what);
    this.advice = advice;
  }
}

export function heading(text) {
  console.log(`\n${bold(`== ${text}`)}`);
}

export function say(text) {
  console.log(text);
}

/** Runs a script's main function; a failure ends the process with 1 and a sentence that helps. */
export async function runMain(main) {
  try {
    process.exitCode = (await main()) ?? 0;
  } catch (error) {
    if (error instanceof Failure) {
      console.error(`\n${red('Failed:')} ${error.message}`);
      console.error(`What to do: ${error.advice}`);
    } else {
      console.error(`\n${red('Failed:')} ${error?.stack ?? error}`);
      console.error('What to do: this is a fault of the script itself; please report these lines.');
    }
    process.exitCode = 1;
  }
}
