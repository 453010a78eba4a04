// Finds where a text stops being JSON (RFC 8259). V8's message sometimes has no position and sometimes quotes the text;
// a client needs the first and must never see the second. Runs on refused bodies only; no recursion, so no depth limit.

const WHITE = /[\t\n\r ]*/y;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*"/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const LITERAL = /true|false|null/y;

/** Characters before the first one that no JSON text could have there; the length when it ends too early. */
export function jsonErrorPosition(text: string): number {
  /** Open brackets, innermost last. */
  const open: ('{' | '[')[] = [];
  let at = 0;
  const skip = (pattern: RegExp): boolean => {
    pattern.lastIndex = at;
    if (!pattern.test(text)) return false;
    at = pattern.lastIndex;
    return true;
  };
  let expected: 'value' | 'first' | 'key' | 'colon' | 'more' = 'value';
  for (;;) {
    skip(WHITE);
    const char = text[at];
    if (expected === 'colon') {
      if (char !== ':') return at;
      at++;
      expected = 'value';
    } else if (expected === 'key' || (expected === 'first' && open.at(-1) === '{' && char !== '}')) {
      if (!skip(STRING)) return stringErrorPosition(text, at);
      expected = 'colon';
    } else if ((expected === 'more' || expected === 'first') && char !== undefined && char === closerOf(open.at(-1))) {
      at++;
      open.pop();
      expected = 'more';
    } else if (expected === 'more') {
      if (open.length === 0 || char !== ',') return at;
      at++;
      expected = open.at(-1) === '{' ? 'key' : 'value';
    } else if (char === '{' || char === '[') {
      at++;
      open.push(char);
      expected = 'first';
    } else {
      if (!skip(STRING) && !skip(NUMBER) && !skip(LITERAL)) return char === '"' ? stringErrorPosition(text, at) : at;
      expected = 'more';
    }
  }
}

function closerOf(bracket: '{' | '[' | undefined): string | undefined {
  return bracket === '{' ? '}' : bracket === '[' ? ']' : undefined;
}

const STRING_START = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*/y;

function stringErrorPosition(text: string, at: number): number {
  STRING_START.lastIndex = at;
  return STRING_START.test(text) ? STRING_START.lastIndex : at;
}
