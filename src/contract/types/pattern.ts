// Estimates the cost of a regular expression. V8 backtracks: when a match fails, V8 tries the next way to divide the
// text among the repetitions. A repetition is variable when its number of rounds is not fixed, as with `*`, `?` and
// `{1,3}`. The fixed repetition `a{3}` means `aaa`.
//
// Rules 1 and 2 refuse patterns that can take exponentially long. Both rules treat `{1,3}` like `*`.
// 1. A variable repetition inside another repetition is accepted only when the text alone decides where both end:
//    `(?:-[a-z]+)*`, but not `(?:[a-z]+)*`. Each round of the outer repetition must meet three conditions.
//    a. The round has no alternatives.
//    b. The round begins with a character that nothing from its first repetition or group on can match, or it ends with
//       a character that nothing up to its last repetition or group can match.
//    c. No variable repetition in the round, except the last one, can match the character directly after it.
// 2. Repeated alternatives are accepted only when no two begin with the same character: `(?:a|b)*`, not `(?:a|ab)*`.
// Rule 3 estimates the steps of all other patterns: the length of the text, multiplied by a factor for each repetition.
// 3. The factor is one more than the number of places at which V8 can end the repetition again after a failure.
//    a. In `a*a*`, the first repetition can match everything up to the second repetition, and the first character of
//       the second. V8 can then end the first at every character of the text, or as often as its bound allows.
//    b. In `[a-z]*foo-`, the repetition can also match `foo`, but not `-`. V8 can then end it at three other places.
//    c. A pattern without a leading ^ is treated as if it began with a repetition of any character.
//    d. For alternatives that are not repeated, the factor is their number when two of them can begin with the same
//       character. A group with `?` has one more alternative, which is empty.
// 4. References to groups, and variable repetitions in a look-behind, are refused.
import { LIMITS } from './limits.ts';

/** A set of characters. Each bit stands for one sample character (`samplesOf`). */
type Characters = bigint;
type Sequence = readonly Part[];

interface Part {
  /** All characters that the part can match. */
  readonly set: Characters;
  /** The characters with which a match of the part can begin. */
  readonly first: Characters;
  /** The length of the shortest match. */
  readonly minLength: number;
  /** Maximum number of rounds of a variable repetition, or 0 for a part that is not repeated. */
  readonly maxRounds: number;
  /** The alternatives of a group. The list is empty for a single character. */
  readonly alternatives: readonly Sequence[];
  /** Whether the part is a look-ahead, which consumes no character. */
  readonly isLookAhead?: boolean;
}

/**
 * For each repetition and each group with alternatives: how many more times V8 can try it after its first try fails.
 * Infinity means as many times as the text has characters. Entries that would be 0 are left out.
 */
export type Retries = readonly number[];

/** Maximum number of parts when a repetition is written out: `a{3}` becomes the three parts of `aaa`. */
const MAX_WRITTEN_PARTS = 5000;
const NESTED = 'a repetition inside a repetition can take exponentially long: let';
const ALIKE =
  'repeated alternatives that begin alike can take exponentially long: let each begin with a character of its own';
const EMPTY = 'a repetition of what can be empty can take exponentially long: let it match at least one character';

/** @returns the reason why a pattern is refused; undefined for an accepted pattern */
export function checkPattern(source: string): string | undefined {
  try {
    new RegExp(source, 'u');
    const sequence = parsePattern(source);
    const minLength = minLengthOf(sequence);
    if (stepsOf(retriesIn(sequence, 0n), minLength) <= LIMITS.patternSteps) return undefined;
    return `a text of ${minLength} characters can take too long: write repetitions that cannot match what comes after them`;
  } catch (error) {
    return (error as Error).message;
  }
}

/** @throws Error when a match can take exponentially long */
export function retriesOf(source: string): Retries {
  return retriesIn(parsePattern(source), 0n);
}

/** @param length number of characters of the text */
export function stepsOf(retries: Retries, length: number): number {
  return retries.reduce((steps, count) => steps * (Math.min(count, length) + 1), length + 1);
}

/** @param following the characters that can come directly after the sequence */
function retriesIn(sequence: Sequence, following: Characters): Retries {
  return sequence.flatMap((part, i) => {
    const { alternatives, maxRounds, isLookAhead } = part;
    if (isCharacter(part)) return [];
    if (alternatives.length === 0 || maxRounds > 1) {
      refuseCostlyRounds(alternatives);
      const retries = Math.min(
        alternatives.some(holdsVariable) ? Infinity : maxRounds,
        countRetries(part, sequence, i + 1, following),
      );
      return retries === 0 ? [] : [retries];
    }
    const next = isLookAhead ? 0n : firstCharactersOf(sequence, i + 1, following);
    // A group with `?` is a choice between its alternatives and nothing.
    const choices = maxRounds === 1 ? [...alternatives, []] : alternatives;
    return [
      ...choices.flatMap((choice) => retriesIn(choice, next)),
      ...(beginDistinctly(choices, next) ? [] : [choices.length - 1]),
    ];
  });
}

/** Counts the other places at which a repetition can end (rule 3b). Returns Infinity in the case of rule 3a. */
function countRetries({ set }: Part, sequence: Sequence, from: number, following: Characters): number {
  for (let i = from; i <= sequence.length; i++) {
    if ((set & firstCharactersOf(sequence, i, following)) === 0n) return i - from;
    if (i < sequence.length && !isCharacter(sequence[i] as Part)) break;
  }
  return Infinity;
}

// Repeated groups

/** Refuses a repeated group by rules 1 and 2. @param alternatives those of the group; none for a single character */
function refuseCostlyRounds(alternatives: readonly Sequence[]): void {
  if (alternatives.some((round) => minLengthOf(round) === 0)) throw new Error(EMPTY);
  if (alternatives.some(holdsVariable)) return refuseCostlyNested(alternatives);
  if (!beginDistinctly(alternatives, 0n)) throw new Error(ALIKE);
  for (const part of alternatives.flat()) refuseCostlyRounds(part.alternatives);
}

/** Refuses a repeated group that contains a variable repetition (rule 1). */
function refuseCostlyNested(alternatives: readonly Sequence[]): void {
  if (hasChoice(alternatives)) throw new Error(`${NESTED} each round have no alternatives`);
  const [round] = alternatives as [Sequence];
  const start = round.findIndex((part) => !isCharacter(part));
  const end = round.findLastIndex((part) => !isCharacter(part)) + 1;
  const beginsUniquely = start > 0 && ((round[0] as Part).set & setOf(round.slice(start))) === 0n;
  const endsUniquely = end < round.length && ((round.at(-1) as Part).set & setOf(round.slice(0, end))) === 0n;
  if (!beginsUniquely && !endsUniquely)
    throw new Error(
      `${NESTED} each round begin or end with a character that nothing else in it can match, like (?:-[a-z]+)*`,
    );
  refuseAmbiguous(round);
}

/** Refuses a round by rule 1c. Groups within the round are checked, too. */
function refuseAmbiguous(round: Sequence): void {
  const last = round.findLastIndex(({ maxRounds }) => maxRounds > 0);
  round.forEach(({ set, maxRounds, alternatives }, i) => {
    if (maxRounds > 0 && i < last && (set & firstCharactersOf(round, i + 1, 0n)) !== 0n)
      throw new Error(`${NESTED} no repetition in a round, except its last, match what may come directly after it`);
    if (maxRounds > 1) refuseCostlyRounds(alternatives);
    else if (alternatives.some((sequence) => minLengthOf(sequence) === 0)) throw new Error(EMPTY);
    else alternatives.forEach(refuseAmbiguous);
  });
}

// Parts and their characters

const isCharacter = ({ alternatives, maxRounds }: Part): boolean => alternatives.length === 0 && maxRounds === 0;
const holdsVariable = (sequence: Sequence): boolean =>
  sequence.some(({ maxRounds, alternatives }) => maxRounds > 0 || alternatives.some(holdsVariable));
const hasChoice = (alternatives: readonly Sequence[]): boolean =>
  alternatives.length > 1 || alternatives.flat().some((part) => part.isLookAhead || hasChoice(part.alternatives));
const minLengthOf = (sequence: Sequence): number => sequence.reduce((sum, { minLength }) => sum + minLength, 0);
const setOf = (sequence: Sequence): Characters => sequence.reduce((set, part) => set | part.set, 0n);
const sizeOf = (sequence: Sequence): number =>
  sequence.reduce(
    (sum, { alternatives }) => alternatives.reduce((inner, alternative) => inner + sizeOf(alternative), sum + 1),
    0,
  );

/** Returns the characters that can come first from the part at `from` on; `following` can come after all the parts. */
function firstCharactersOf(sequence: Sequence, from: number, following: Characters): Characters {
  let first = 0n;
  for (let i = from; i < sequence.length; i++) {
    first |= (sequence[i] as Part).first;
    if ((sequence[i] as Part).minLength > 0) return first;
  }
  return first | following;
}

function beginDistinctly(alternatives: readonly Sequence[], following: Characters): boolean {
  const firsts = alternatives.map((sequence) => firstCharactersOf(sequence, 0, following));
  return firsts.every((first, i) => firsts.slice(i + 1).every((other) => (first & other) === 0n));
}

function groupOf(alternatives: readonly Sequence[]): Part {
  const first = alternatives.reduce((set, alternative) => set | firstCharactersOf(alternative, 0, 0n), 0n);
  const minLength = Math.min(...alternatives.map(minLengthOf));
  return { set: setOf(alternatives.flat()), first, minLength, maxRounds: 0, alternatives };
}

/** The white space beyond ASCII: the first and the last character of each range that `\s` has there. */
const SPACE = '\u00a0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000\ufeff';
const ESCAPED_CHARACTER = /\\u\{([\da-f]+)\}|\\u([\da-f]{4})|\\x([\da-f]{2})/giu;
const ASCII = Array.from({ length: 128 }, (_, code) => String.fromCharCode(code));

/**
 * Returns sample characters that represent all others: ASCII, some characters beyond ASCII, and each character in the
 * pattern with its two neighbours, where a range such as `[à-ÿ]` can begin or end.
 */
function samplesOf(source: string): readonly string[] {
  const unescaped = source.replace(ESCAPED_CHARACTER, (_, long, short, byte) =>
    String.fromCodePoint(Number.parseInt(long ?? short ?? byte, 16)),
  );
  const codes = Array.from(`${SPACE}é中😀${unescaped}`, (char) => char.codePointAt(0) as number);
  const beside = codes.flatMap((code) => [code - 1, code, code + 1]).filter((code) => code > 127 && code <= 0x10ffff);
  return [...ASCII, ...new Set(beside.map((code) => String.fromCodePoint(code)))];
}

/**
 * Returns the samples that an atom (a character, an escape or a class) matches. `\p{…}` can match characters that are
 * no samples, so it is treated as if it matched all samples beyond ASCII.
 */
function charactersOf(atom: string, samples: readonly string[]): Characters {
  const test = new RegExp(`^(?:${atom})$`, 'u');
  const isProperty = /\\p\{/i.test(atom);
  return samples.reduce(
    (set, char, i) => (test.test(char) || (isProperty && char > '\x7f') ? set | (1n << BigInt(i)) : set),
    0n,
  );
}

// Parsing

/** An atom: an escape (also of a surrogate pair), a class, the opening of a group, or a character. */
const ATOM =
  /\\(?:u\{[\da-f]+\}|ud[89ab][\da-f]{2}\\ud[c-f][\da-f]{2}|u[\da-f]{4}|x[\da-f]{2}|c[a-z]|p\{[^}]*\}|[\s\S])|\[(?:\\[\s\S]|[^\]\\])*\]|\((?:\?(?:[:=!]|<[=!]|<[^>]*>))?|[\s\S]/giuy;
/** A quantifier such as `*` or `{1,3}`. A `?` after the quantifier changes which match is found, but not the cost. */
const QUANTIFIER = /(?:([*+?])|\{(\d+)(,(\d*))?\})\??/y;

/** Parses a pattern (rule 3c included). @param source a regular expression that V8 accepts */
function parsePattern(source: string): Sequence {
  const samples = samplesOf(source);
  const sets = new Map<string, Characters>();
  let at = 0;
  const choices = readAlternatives();
  const anywhere: Part = { set: ~0n, first: ~0n, minLength: 0, maxRounds: Infinity, alternatives: [] };
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
    if (!text.startsWith('(')) {
      const set = sets.get(text) ?? charactersOf(text, samples);
      sets.set(text, set);
      return repeat([{ set, first: set, minLength: 1, maxRounds: 0, alternatives: [] }]);
    }
    const choices = readAlternatives();
    at++;
    const group = groupOf(choices);
    if (!/^\(\?<?[=!]/.test(text)) return repeat(choices.length === 1 ? (choices[0] as Sequence) : [group]);
    if (!choices.some(holdsVariable)) return [];
    if (text.startsWith('(?<'))
      throw new Error('a variable repetition in a look-behind can take very long: give it a fixed length');
    return [{ ...group, set: 0n, first: ~0n, minLength: 0, isLookAhead: true }];
  }

  /** Writes out the required rounds (`a{3,5}` begins with `aaa`), and adds one part for the optional rounds. */
  function repeat(item: Sequence): Sequence {
    const [min, max] = readQuantifier();
    if (min * sizeOf(item) > MAX_WRITTEN_PARTS)
      throw new Error(`its repetitions expand to more than ${MAX_WRITTEN_PARTS} characters and groups`);
    const requiredRounds = Array.from({ length: min }, () => item).flat();
    const [single] = item;
    if (max === min || single === undefined) return requiredRounds;
    const isPlain = item.length === 1 && single.maxRounds === 0 && !single.isLookAhead;
    return [...requiredRounds, { ...(isPlain ? single : groupOf([item])), minLength: 0, maxRounds: max - min }];
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
