/** The first line of a text that is not blank, of its first thousand characters. */
export const firstLine = (text: string) =>
  text
    .slice(0, 1_000)
    .trimStart()
    .split(/\r\n?|\n/, 1)[0] ?? '';
