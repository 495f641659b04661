/** For `node --import`: the clock of the process starts at TEST_CLOCK instead of now, and goes on from there. */
const start = Date.now();
const began = Date.parse(process.env.TEST_CLOCK);
const RealDate = Date;

globalThis.Date = class SetDate extends RealDate {
  constructor(...parts) {
    if (parts.length === 0) super(SetDate.now());
    else super(...parts);
  }
  static now() {
    return began + RealDate.now() - start;
  }
};
