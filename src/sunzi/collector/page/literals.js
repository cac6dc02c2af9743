// Texts as literals of programming languages, to be read by people too: what cannot be seen is written as an escape.

function literal(text, escape) {
  const unseen = /[\p{C}\p{Z}]/gu;
  return JSON.stringify(text).replace(unseen, (character) => {
    if (character === " ") return character;
    const code = character.codePointAt(0).toString(16);
    return code.length > 4 ? escape(code) : `\\u${code.padStart(4, "0")}`;
  });
}

export const pythonLiteral = (text) => literal(text, (code) => `\\U${code.padStart(8, "0")}`);

/** It can stand in a script that is written into a page: no tag or comment of HTML begins within. */
export function javascriptLiteral(text) {
  return literal(text, (code) => `\\u{${code}}`).replace(/<(?=[!/a-z])/gi, "\\x3c");
}
