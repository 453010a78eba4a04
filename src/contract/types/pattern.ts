// Estimates the cost of a regular expression. V8 backtracks: when a match fails, V8 tries the next choice that is left.
// A repetition has a choice after each round, unless its number of rounds is fixed: `a{3}` means `aaa`. A choice is
// decided when the next character of the text rules out all ways but one. In `[^@]+@`, the repetition ends at an at
// sign. In `[^@]+\.`, a dot can end the repetition, and can also be a part of it.
// 1. Decided choices cost nothing. An undecided repetition multiplies the steps of a match by the number of places
//    where it can end: by the length of the text, or by less if a bound (`{0,9}`) or the characters after it leave
//    fewer places. Undecided alternatives (`ab|ac`) multiply the steps by their number.
// 2. A pattern without a leading ^ is treated as if it began with a repetition of any character.
// 3. An undecided choice inside a repetition can take exponentially long, so it is refused. One is accepted: the last
//    choice of a round, if the round begins or ends with a character that nothing else in it can match.
// 4. References to groups, and variable repetitions in a look-behind, are refused.

import { LIMITS } from './check-cost.ts';
import { meet } from './common-character.ts';
import { countParts, type Part, parsePattern, type Sequence } from './parse-pattern.ts';

/** For each undecided choice, how often V8 can try it again; Infinity means as often as the text has characters. */
export type Retries = readonly number[];

/** How the round of a repetition is written. In a `delimited` one, the last choice may be undecided (rule 3). */
type Round = 'plain' | 'delimited';

const NESTED =
  'a repetition inside a repetition can take exponentially long: let it match no character that may come directly after it, like (?:-[a-z]+)*';
const ALIKE =
  'repeated alternatives that begin alike can take exponentially long: let each begin with a character of its own';
const LOOK_AHEAD = 'a look-ahead in a repetition can take very long: give it a fixed length';

/** @returns the reason why a pattern is refused; undefined for an accepted pattern */
export function checkPattern(source: string): string | undefined {
  try {
    new RegExp(source, 'u');
    const sequence = parsePattern(source);
    const minLength = Math.max(minLengthOf(sequence), 1);
    if (stepsOf(retriesIn(sequence, []), minLength) <= LIMITS.patternSteps) return undefined;
    return `a text of length ${minLength} can take too long: write repetitions that cannot match what comes after them`;
  } catch (error) {
    return (error as Error).message;
  }
}

/** @throws Error when a match can take exponentially long */
export const retriesOf = (source: string): Retries => retriesIn(parsePattern(source), []);

export function stepsOf(retries: Retries, length: number): number {
  return retries.reduce((steps, count) => steps * (Math.min(count, length) + 1), length + 1);
}

/** @param rest the parts that come after the sequence. @param round set if the sequence is in a repetition */
function retriesIn(sequence: Sequence, rest: Sequence, round?: Round): Retries {
  return sequence.flatMap((part, i) => {
    const { alternatives, maxRounds } = part;
    if (isCharacter(part)) return [];
    if (part.isLookAhead) {
      if (round !== undefined && isVariable(part)) throw new Error(LOOK_AHEAD);
      return retriesOfChoice(alternatives, []);
    }
    const inRound = sequence.slice(i + 1);
    const after = [...inRound, ...rest];
    const roundHere = round === 'delimited' && inRound.every(isCharacter) ? round : round && 'plain';
    const retries =
      maxRounds > 1
        ? retriesOfChoice(alternatives, [part, ...after], isDelimited(part, after) ? 'delimited' : 'plain')
        : retriesOfChoice(alternatives, after, roundHere);
    const count = maxRounds === 0 ? 0 : Math.min(maxRounds, countRetries(part, after));
    if (count > 0 && roundHere === 'plain') throw new Error(NESTED);
    return count > 0 && round === undefined ? [...retries, count] : retries;
  });
}

function retriesOfChoice(alternatives: readonly Sequence[], rest: Sequence, round?: Round): Retries {
  const firsts = alternatives.map((alternative) => firstAtoms([...alternative, ...rest]));
  const isDecided = firsts.every((atoms, i) => firsts.slice(i + 1).every((others) => !meetAny(atoms, others)));
  if (!isDecided && round !== undefined) throw new Error(ALIKE);
  const retries = alternatives.flatMap((alternative) => retriesIn(alternative, rest, round));
  return isDecided ? retries : [...retries, alternatives.length - 1];
}

/** Counts the other places at which V8 can end a repetition after its first try fails. */
function countRetries(part: Part, after: Sequence): number {
  if (!meetAny(firstAtoms([{ ...part, maxRounds: 0 }, ...after]), firstAtoms(after))) return 0;
  // In `[a-z]*foo-`, the repetition can match `foo`, but not `-`. V8 can end it at three other places.
  const end = after.findIndex((part) => !isCharacter(part));
  for (let i = 1; i <= (end < 0 ? after.length : end); i++)
    if (!meetAny(atomsIn([part]), firstAtoms(after.slice(i)))) return i;
  return after.some(isVariable) ? Infinity : countParts(after);
}

/** Whether the text alone decides where each round of a repeated group begins and ends. */
function isDelimited({ alternatives }: Part, after: Sequence): boolean {
  const [round = []] = alternatives;
  const [first, last] = [round[0], round.at(-1)] as [Part, Part];
  if (alternatives.length !== 1) return false;
  if (isCharacter(last) && !meetAny([last.atom], atomsIn(round.slice(0, -1)))) return true;
  const beginsUniquely = isCharacter(first) && !meetAny([first.atom], atomsIn(round.slice(1)));
  return beginsUniquely && !meetAny(atomsIn(round), firstAtoms(after));
}

/** Stands for the end of the pattern among the atoms that can come next. */
const END = '';

// Parts

const isCharacter = ({ atom, maxRounds }: Part): boolean => atom !== '' && maxRounds === 0;
const isVariable = ({ maxRounds, alternatives }: Part): boolean =>
  maxRounds > 0 || alternatives.some((alternative) => alternative.some(isVariable));
const isNullable = ({ atom, maxRounds, alternatives, isLookAhead }: Part): boolean =>
  maxRounds > 0 || isLookAhead || (atom === '' && alternatives.some((alternative) => alternative.every(isNullable)));
const minLengthOf = (sequence: Sequence): number =>
  sequence.reduce((sum, part) => {
    if (part.maxRounds > 0 || part.isLookAhead) return sum;
    return sum + (part.atom === '' ? Math.min(...part.alternatives.map(minLengthOf)) : 1);
  }, 0);
const atomsIn = (sequence: Sequence): string[] =>
  sequence.flatMap(({ atom, alternatives }) => (atom === '' ? alternatives.flatMap(atomsIn) : [atom]));

/** Returns the atoms with which a sequence can begin. END is among them if the sequence can be empty. */
function firstAtoms(sequence: Sequence): readonly string[] {
  const atoms = new Set<string>();
  for (const part of sequence) {
    // V8 tries a variable look-ahead again at each place, whatever comes next.
    if (part.isLookAhead && isVariable(part)) atoms.add('[^]');
    else if (!part.isLookAhead)
      for (const first of part.atom === '' ? part.alternatives.flatMap(firstAtoms) : [part.atom]) atoms.add(first);
    if (!isNullable(part)) {
      atoms.delete(END);
      return [...atoms];
    }
  }
  return [...atoms.add(END)];
}

const meetAny = (atoms: readonly string[], others: readonly string[]): boolean =>
  atoms.some((atom) => others.some((other) => atom === other || (atom !== END && other !== END && meet(atom, other))));
