import { derived, int4, text } from '../../declaration/fields.ts';

const NUMBER = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d{1,3})?$/i;

/** The value of a fact and what is said of it, as in every response of generic facts. */
export const factFields = [
  text('label', 'label', 'Label of the fact.'),
  text('unitId', 'unit_id', 'Unit of the value; empty when left out.', { absent: '' }),
  int4('decimals', 'decimals', 'Decimals the value is stated with.'),
  text('value', 'value', 'Value as sent.'),
  derived('value_number', 'numeric', 'The value where it reads as a number, else null.', (get) => {
    const value = get('value');
    if (typeof value === 'number') return value;
    return typeof value === 'string' && NUMBER.test(value.trim()) ? value.trim() : null;
  }),
  text('description', 'description', 'Description of the fact.'),
];
