/** The comments of a table or view and of its columns, as `\d+` in psql and docs/tables.md show them. */
interface Description {
  readonly name: string;
  readonly kind: 'table' | 'view';
  readonly comment: string;
  readonly columns: Readonly<Record<string, string>>;
}

const descriptions: Description[] = [];

export const addDescription = (description: Description) => void descriptions.push(description);

/** Every description of the schema files that were imported, by name. */
export const etlDescriptions = (): readonly Description[] =>
  descriptions.toSorted((left, right) => (left.name < right.name ? -1 : 1));
