/**
 * Characters with which a text from outside could steer a terminal, or show another order of its letters than
 * it has: control characters but for tab and line feed, and marks of writing direction.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** The text with control characters written out, e.g. `\u001b`: as JSON spells them, so that JSON stays the same document. */
export function writeOutControls(text: string): string {
  return text.replace(CONTROLS, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
