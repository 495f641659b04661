import type { ComponentChildren, VNode } from 'preact';
import { render } from 'preact-render-to-string';
import type { Config } from '../core/config.ts';
import type { Day } from '../core/days.ts';
import type { Pair } from '../core/exchanges.ts';
import type { QueueContext } from '../jobs/context.ts';
import { ASSETS } from './assets.ts';

/** What a page is made from. */
export interface PageContext extends QueueContext {
  /** The token for the forms of this visitor; null if there are no buttons. */
  readonly token: string | null;
}

/** The parameters in the address of a page. */
export interface Asked {
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
}

/** What a page shows. */
export interface Page {
  readonly title: string;
  readonly main: VNode;
  readonly status?: number;
  /** With JavaScript, the page is refreshed after this many seconds. */
  readonly refreshS?: number;
}

/** The page of a data set's calendar, or of one of its days. */
export function coveragePath({ operation, exchange }: Pair, day?: Day): string {
  const parts = [operation, exchange, ...(day === undefined ? [] : [day])];
  return `/coverage/${parts.map(encodeURIComponent).join('/')}`;
}

const NAVIGATION = [
  { path: '/', name: 'Tonight' },
  { path: '/coverage', name: 'Coverage' },
  { path: '/runs', name: 'Runs' },
  { path: '/quality', name: 'Quality' },
  { path: '/freshness', name: 'Freshness' },
  { path: '/rows', name: 'Rows' },
  { path: '/dictionary', name: 'Dictionary' },
  { path: '/queues', name: 'Queues' },
] as const;

interface Frame {
  /** The requested path, to mark the current page in the navigation. */
  readonly path: string;
  readonly config: Pick<Config, 'EOD_TIMEZONE'>;
  /** When the page was made, in EOD_TIMEZONE. */
  readonly at: string;
  readonly notice: string | null;
}

/** Renders the document. All text is escaped, and nothing comes from another host. */
export function documentOf({ title, main, refreshS }: Page, frame: Frame): string {
  return `<!doctype html>${render(
    <html lang="en" data-refresh={refreshS}>
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>{`${title} · eod`}</title>
        <link rel="icon" href={ASSETS.icon.url} type="image/svg+xml" />
        <link rel="stylesheet" href={ASSETS.style.url} />
        <script src={ASSETS.script.url} defer />
      </head>
      <body>
        <a class="skip" href="#main">
          Skip to the content
        </a>
        <header class="top">
          <a class="brand" href="/">
            <img src={ASSETS.icon.url} alt="" width="24" height="24" />
            eod
          </a>
          <nav aria-label="Pages">
            <ul>
              {NAVIGATION.map(({ path, name }) => (
                <li key={path}>
                  <a href={path} aria-current={isAt(frame.path, path) ? 'page' : undefined}>
                    {name}
                  </a>
                </li>
              ))}
            </ul>
          </nav>
        </header>
        <main id="main" tabIndex={-1}>
          {frame.notice === null ? null : (
            <p class="notice" role="status">
              {frame.notice}
            </p>
          )}
          {main}
          <p class="made">
            As of <span data-made="">{frame.at}</span>, times in {frame.config.EOD_TIMEZONE}
          </p>
        </main>
      </body>
    </html>,
  )}`;
}

const isAt = (path: string, of: string) =>
  of === '/' ? path === '/' : path === of || path.startsWith(`${of}/`);

/** The heading of a page, with a line that says what it shows. */
export function Heading({
  title,
  children,
}: {
  readonly title: string;
  readonly children?: ComponentChildren;
}) {
  return (
    <div class="heading">
      <h1>{title}</h1>
      {children === undefined ? null : <p class="lead">{children}</p>}
    </div>
  );
}
