// Decides whether two atoms of a regular expression (characters, escapes or classes) match a common character.
import { createBoundedMap } from '../../base/bounded-map.ts';

const ASCII = String.fromCharCode(...Array(128).keys());
/** Matches an atom that matches only ASCII characters. */
const ONLY_ASCII = /^(?!\.|\[\^)(?:[ -[\]-~]|\\(?:[dwtnrvf\W]|x[0-7][\da-fA-F]))+$/;
/** Matches an atom with a property or with a character of two UTF-16 units, which are not compared one by one. */
const HAS_WIDE_CHARACTER = /\\p\{|\\u\{|\\ud[89a-f]|[\u{10000}-\u{10ffff}]/iu;
/** All characters beyond ASCII that are one UTF-16 unit. */
let others: string | undefined;
/** The latest results, by both atoms. */
const results = createBoundedMap<boolean>(20_000);

/** Also true for some atoms that match only different characters of two UTF-16 units, such as two emojis. */
export function meet(atom: string, other: string): boolean {
  const key = `${atom}\n${other}`;
  const known = results.get(key);
  if (known !== undefined) return known;
  const result = haveCommonCharacter(atom, other);
  results.set(key, result);
  return result;
}

function haveCommonCharacter(atom: string, other: string): boolean {
  const both = new RegExp(`(?=${atom})${other}`, 'u');
  if (both.test(ASCII)) return true;
  if (ONLY_ASCII.test(atom) || ONLY_ASCII.test(other)) return false;
  others ??= Array.from({ length: 0xff80 }, (_, i) => String.fromCharCode(i + 128))
    .join('')
    .replace(/[\ud800-\udfff]/g, '');
  return both.test(others) || (matchesWide(atom) && matchesWide(other));
}

function matchesWide(atom: string): boolean {
  return HAS_WIDE_CHARACTER.test(atom) || new RegExp(`^${atom}$`, 'u').test('😀');
}
