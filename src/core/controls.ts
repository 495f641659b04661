/**
 * Characters with which text from outside could control a terminal or be shown in another order than it is stored:
 * control characters except tab and line feed, and the marks that set the writing direction.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the expression is there to find them.
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Escapes control characters as JSON does, e.g. `\u001b`, so that a JSON document keeps its meaning. */
export function escapeControls(text: string): string {
  return text.replace(CONTROLS, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
