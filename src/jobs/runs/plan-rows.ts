import { MOST_ROW_QUESTIONS, type RowQuestions, rowVariant } from '../../load/market/row-questions.ts';
import type { PlannedWindow } from '../../load/state/windows/plan.ts';
import {
  ASKED,
  COVERED,
  ownOptions,
  type PlanInput,
  sharedFields,
  skipAll,
  windowOf,
} from './planned-window.ts';

const NO_ROWS: RowQuestions = { questions: [], more: false, hasRows: false };

/** One window for each question that the stored rows of another operation leave to be asked. */
export function* planRows(input: PlanInput): Generator<PlannedWindow> {
  const { windows, name } = input.operation;
  if (windows.per !== 'row') return;
  const { questions, more, hasRows, problem } = input.rows ?? NO_ROWS;
  if (problem !== undefined) {
    yield skipAll(input, problem);
    return;
  }
  if (!hasRows) {
    const whose = input.instruments.length === 0 ? '' : ' about these instruments';
    const reason = `it asks about the rows of ${windows.of}, and none${whose} is stored for ${input.exchange}: load ${windows.of} first`;
    yield skipAll(input, reason);
    return;
  }
  if (questions.length === 0) {
    yield skipAll(input, COVERED);
    return;
  }
  const names = Object.keys(windows.params);
  // What a row gives is not a filter, even if the user has chosen among the rows by it.
  const others = Object.entries(ownOptions(input)).filter(([param]) => !names.includes(param));
  const options = Object.fromEntries(others);
  const shared = sharedFields({ ...input, options });
  for (const { instrument, values, day } of questions) {
    const own = Object.fromEntries(names.map((param, at) => [param, values[at] as string]));
    const variant = rowVariant(values);
    yield windowOf(shared, { from: day, to: day, params: { ...options, ...own }, variant, ...ASKED }, [
      instrument,
    ]);
  }
  if (more) {
    yield skipAll(
      input,
      `a run asks at most ${MOST_ROW_QUESTIONS} questions of ${name}: the next one asks for the others`,
    );
  }
}
