import { join } from 'node:path';
import { defaultDataFolder } from '../core/data-folder.ts';
import { fileSettings } from '../core/environment.ts';

/** Settings of the user that apply to the demo too; the others concern the real source and database. */
const SHARED_WITH_DEMO = [
  'EOD_LOG_LEVEL',
  'EOD_CONCURRENCY',
  'EOD_INSTRUMENT_LIMIT',
  'EOD_HTTP_HOST',
  'EOD_HTTP_PORT',
  'EOD_WEB_PASSWORD',
  fileSettings.EOD_WEB_PASSWORD,
];

/** The settings of the demo, which has its own database. */
export function demoSettings(
  surroundings: Parameters<typeof defaultDataFolder>[0],
  userSettings: Readonly<Record<string, string>>,
): Record<string, string> {
  const shared = Object.entries(userSettings).filter(([name]) => SHARED_WITH_DEMO.includes(name));
  return {
    EOD_INSTRUMENT_LIMIT: '10',
    ...Object.fromEntries(shared),
    EOD_DATA_DIR: join(userSettings.EOD_DATA_DIR ?? defaultDataFolder(surroundings).path, 'demo'),
    EOD_CALLS_PER_HOUR: '1000000',
  };
}
