/** Says what is wrong with a declaration, each in one sentence with the field and what to do. */
export function checkDeclaration(declared: unknown): string[] {
  if (typeof declared !== 'object' || declared === null)
    return ['it has no default export made by defineOperation'];
  return [];
}
