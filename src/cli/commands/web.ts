import { defineCommand } from '../define-command.ts';
import { loadSettings } from '../load-settings.ts';
import { integer } from '../options.ts';

export default defineCommand({
  path: 'web',
  group: 'Look',
  summary:
    'Serve the dashboard alone, until Ctrl-C: what is loaded, what is missing and why, runs, data quality.',
  options: {
    port: integer('<n>', 'listen on this port instead of EOD_HTTP_PORT; 0: a free one', {
      least: 0,
      most: 65_535,
    }),
  },
  json: false,
  examples: ['eod web', 'eod web --port 8081', 'eod --demo web'],
  /** Needs neither the source's address nor the key. */
  async run(cli, { port }) {
    const { openContext } = await import('../open-context.ts');
    const { logDashboard, serve } = await import('../serve-dashboard.ts');
    const settings = await loadSettings(cli);
    const config = port === undefined ? settings : { ...settings, EOD_HTTP_PORT: port };
    const context = await openContext(cli, { config, queue: true, wait: 'long' });
    logDashboard(cli, config, await serve(cli, context, ['web']));
    await cli.life.stopped;
  },
});
