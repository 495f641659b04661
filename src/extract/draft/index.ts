export { draftDeclaration } from './draft.ts';
export { draftFields } from './draft-fields.ts';
export { readSavedAnswer } from './saved-answer.ts';
