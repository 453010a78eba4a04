// Parses regular expressions as far as pattern.ts needs them to estimate their cost.

export type Sequence = readonly Part[];

export interface Part {
  /** A character, an escape or a class, as written; empty for a group. */
  readonly atom: string;
  readonly alternatives: readonly Sequence[];
  /** Maximum number of rounds of a variable repetition, or 0 for a part that is not repeated. */
  readonly maxRounds: number;
  /** Whether the part is a look-ahead, which consumes no character. */
  readonly isLookAhead: boolean;
}

/** Maximum number of parts when a repetition is written out: `a{3}` becomes the three parts of `aaa`. */
const MAX_WRITTEN_PARTS = 5000;

const characterOf = (atom: string): Part => ({ atom, alternatives: [], maxRounds: 0, isLookAhead: false });
const groupOf = (alternatives: readonly Sequence[]): Part => ({ ...characterOf(''), alternatives });

export function countParts(sequence: Sequence): number {
  return sequence.reduce((sum, { alternatives }) => alternatives.map(countParts).reduce((a, b) => a + b, sum + 1), 0);
}

/** An atom: an escape (also of a surrogate pair), a class, the opening of a group, or a character. */
const ATOM =
  /\\(?:u\{[\da-f]+\}|ud[89ab][\da-f]{2}\\ud[c-f][\da-f]{2}|u[\da-f]{4}|x[\da-f]{2}|c[a-z]|p\{[^}]*\}|[\s\S])|\[(?:\\[\s\S]|[^\]\\])*\]|\((?:\?(?:[:=!]|<[=!]|<[^>]*>))?|[\s\S]/giuy;
/** A quantifier such as `*` or `{1,3}`. A `?` after the quantifier changes which match is found, but not the cost. */
const QUANTIFIER = /(?:([*+?])|\{(\d+)(,(\d*))?\})\??/y;

/** Parses a regular expression that V8 accepts. Without a leading ^, it begins with a repetition of any character. */
export function parsePattern(source: string): Sequence {
  let at = 0;
  const choices = readAlternatives();
  const anywhere: Part = { ...characterOf('[^]'), maxRounds: Infinity };
  const sequence = choices.length === 1 ? (choices[0] as Sequence) : [groupOf(choices)];
  return choices.length === 1 && source.startsWith('^') ? sequence : [anywhere, ...sequence];

  function readAlternatives(): Sequence[] {
    const sequences: Part[][] = [[]];
    while (at < source.length && source[at] !== ')') {
      if (source[at] === '|') {
        at++;
        sequences.push([]);
      } else sequences.at(-1)?.push(...readPart());
    }
    return sequences;
  }

  function readPart(): Sequence {
    ATOM.lastIndex = at;
    const text = ATOM.exec(source)?.[0] as string;
    at += text.length;
    if (text === '(' && source[at] === '?') throw new Error('flags of a group are not supported');
    if (/^\\[1-9k]/.test(text)) throw new Error('references to groups are not supported: they can take very long');
    if (/^(?:\^|\$|\\b)$/i.test(text)) return []; // an anchor consumes no character
    if (!text.startsWith('(')) return repeat([characterOf(text)]);
    const choices = readAlternatives();
    at++;
    const group = groupOf(choices);
    if (!/^\(\?<?[=!]/.test(text)) return repeat(choices.length === 1 ? (choices[0] as Sequence) : [group]);
    if (!text.startsWith('(?<')) return [{ ...group, isLookAhead: true }];
    if (choices.flat().every(({ atom, maxRounds }) => atom !== '' && maxRounds === 0)) return [];
    throw new Error('a look-behind can take very long: write only characters in it, without repetitions and groups');
  }

  /** Writes out the required rounds (`a{3,5}` begins with `aaa`), and adds one part for the optional rounds. */
  function repeat(item: Sequence): Sequence {
    const [min, max] = readQuantifier();
    if (min * countParts(item) > MAX_WRITTEN_PARTS)
      throw new Error(`its repetitions expand to more than ${MAX_WRITTEN_PARTS} characters and groups`);
    const requiredRounds = Array.from({ length: min }, () => item).flat();
    const [single] = item;
    if (max === min || single === undefined) return requiredRounds;
    const isPlain = item.length === 1 && single.maxRounds === 0 && !single.isLookAhead;
    return [...requiredRounds, { ...(isPlain ? single : groupOf([item])), maxRounds: max - min }];
  }

  function readQuantifier(): [min: number, max: number] {
    QUANTIFIER.lastIndex = at;
    const match = QUANTIFIER.exec(source);
    if (match === null) return [1, 1];
    at += match[0].length;
    const [, sign, minText, comma, maxText] = match;
    if (sign !== undefined) return [sign === '+' ? 1 : 0, sign === '?' ? 1 : Infinity];
    const min = Number(minText);
    return [min, comma === undefined ? min : maxText === '' ? Infinity : Number(maxText)];
  }
}
