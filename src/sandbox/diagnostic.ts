/** A problem to which the service responds with a line of plain text and status 200. */
export class Diagnostic extends Error {
  constructor(line: string) {
    super(line);
    this.name = 'Diagnostic';
  }
}
