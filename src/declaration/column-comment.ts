import type { Field } from './fields.ts';

/** The comment of a data column: meaning, unit and the source field it comes from. */
export function columnComment(field: Field): string {
  const unit = field.unit === undefined ? '' : ` Unit: ${field.unit}.`;
  return `${field.meaning}${unit} ${describeOrigin(field)}`;
}

function describeOrigin(field: Field): string {
  if (field.from === 'response') return `Source field: ${field.source}.`;
  return field.from === 'request' ? 'From the request.' : 'Computed from the record.';
}
