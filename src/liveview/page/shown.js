// Escape the characters of a text that would mislead a reader, as both programs do. Pure.

// Control characters, bidirectional marks, and invisible characters.
const ODD =
  /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u2069\ufeff\ud800-\udfff\u{e0000}-\u{e007f}]/gu;
const LETTERS = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** Escape misleading characters in a text; a search for a name in this form finds it. */
export function shown(text, keep = "") {
  return text.replace(ODD, (odd) => (keep.includes(odd) ? odd : (LETTERS[odd] ?? written(odd.codePointAt(0)))));
}

function written(code) {
  const hex = code.toString(16);
  if (code < 0x100) return `\\x${hex.padStart(2, "0")}`;
  return code < 0x10000 ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`;
}
