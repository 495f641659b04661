export { draftDeclaration } from './draft.ts';
export { readSavedAnswer } from './saved-answer.ts';
