import type { Asked, Page, PageContext } from '../page.tsx';
import { tonightPage } from './tonight.tsx';

type MakePage = (context: PageContext, asked: Asked) => Promise<Page>;

/** Every page by its address. */
export const pageRoutes: Readonly<Record<string, MakePage>> = {
  '/': tonightPage,
};
