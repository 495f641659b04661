import { type Compute, datetime, derived, type Field, fromRequest, type Kind, text } from '../fields.ts';
import { factFields } from '../tables/facts.ts';
import { keyText, rankAmong } from './shared.ts';

/** A column with a parameter of the request, because the response does not repeat it; empty where it was not sent. */
export const requested = (
  param: string,
  column: string,
  meaning: string,
  kind: Kind = 'text',
  fallback = '',
) => fromRequest(column, kind, meaning, ({ params }) => params[param] ?? fallback);

export const requestedSymbol = fromRequest(
  'symbol',
  'text',
  'Instrument requested.',
  ({ instruments }) => instruments[0] ?? '',
);

export const requestedDay = fromRequest(
  'filing_date',
  'date',
  'Day of the filing, as requested.',
  ({ to }) => to,
);

/** What distinguishes the facts of one statement: the end of their key. */
export const FACT_KEY = ['fact_key', 'context_name', 'unit_id', 'ordinal'];

/** The text of the first of these source fields that has a value, as the key of a fact. */
const firstOf =
  (sources: readonly string[]): Compute =>
  (_get, read) =>
    keyText(sources.map((source) => read(source, 'text')).find((one) => one !== null));

const keyMeaning = (sources: readonly string[]) =>
  `What the fact is of, cut to 200 characters: the first of ${sources.join(', ')} that is sent.`;

/** The key of a fact from a field of its own, or the label. */
export const factKey = (source: string): Field =>
  text(source, 'fact_key', keyMeaning([source, 'Label']), {
    required: true,
    orElse: ['Label'],
    compute: firstOf([source, 'Label']),
  });

/** The key of a fact that has no field of its own, from those that are also stored. */
export const factKeyFrom = (...sources: readonly string[]): Field => ({
  ...derived('fact_key', 'text', keyMeaning(sources), firstOf(sources)),
  required: true,
});

/** The facts of a statement or a pattern. Where they share a key, their order in the response distinguishes them. */
export const factsOf = (key: Field): Field[] => [
  key,
  text('ContextName', 'context_name', 'Context of the fact; empty when left out.', { absent: '' }),
  rankAmong(
    'ordinal',
    ['Key', 'Entity', 'Label', 'ContextName', 'UnitId'],
    'Distinguishes facts with one key: 1 for the first in the response, 2 for the next.',
  ),
  ...factFields,
  datetime('From', 'context_from', 'First moment that the context is about.'),
  datetime('To', 'context_to', 'Last moment that the context is about.'),
];
