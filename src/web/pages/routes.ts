import type { Asked, Page, PageContext } from '../page.tsx';
import { coveragePage, dataSetPage } from './coverage.tsx';
import { dayPage } from './day.tsx';
import { dataSetDictionaryPage, dictionaryPage, viewPage } from './dictionary.tsx';
import { qualityPage } from './quality.tsx';
import { runPage, runsPage } from './runs.tsx';
import { tonightPage } from './tonight.tsx';
import { freshnessPage, rowsPage } from './trends.tsx';

type MakePage = (context: PageContext, asked: Asked) => Promise<Page>;

/** All pages by their addresses. */
export const pageRoutes: Readonly<Record<string, MakePage>> = {
  '/': tonightPage,
  '/coverage': coveragePage,
  '/coverage/:operation/:exchange': dataSetPage,
  '/coverage/:operation/:exchange/:day': dayPage,
  '/runs': runsPage,
  '/runs/:id': runPage,
  '/quality': qualityPage,
  '/freshness': freshnessPage,
  '/rows': rowsPage,
  '/dictionary': dictionaryPage,
  '/dictionary/:name': dataSetDictionaryPage,
  '/dictionary/views/:name': viewPage,
};
