import type { Config } from '../core/config.ts';
import { usageError } from '../core/errors.ts';
import type { SourceSettings } from '../extract/types.ts';

/**
 * Settings of the source, for commands that call it.
 *
 * @throws PipelineError `usage` that says how to get a simulated one.
 */
export function sourceSettings(config: Config): SourceSettings {
  const { EOD_BASE_URL, EOD_ACCESS_KEY } = config;
  if (EOD_BASE_URL === undefined || EOD_ACCESS_KEY === undefined) {
    const missing = [
      ...(EOD_BASE_URL === undefined ? ['EOD_BASE_URL (the address of the data service)'] : []),
      ...(EOD_ACCESS_KEY === undefined ? ['EOD_ACCESS_KEY (your key for it)'] : []),
    ].join(' and ');
    throw usageError(`set ${missing}; "eod sandbox" starts a simulated service and prints what to set`);
  }
  return {
    baseUrl: EOD_BASE_URL,
    accessKey: EOD_ACCESS_KEY,
    dateDialect: config.EOD_DATE_DIALECT,
    dateFormat: config.EOD_DATE_FORMAT,
    format: config.EOD_FORMAT,
    timeZone: config.EOD_TIMEZONE,
    timeoutMs: config.EOD_TIMEOUT_MS,
    maxResponseBytes: config.EOD_MAX_RESPONSE_MB * 1024 * 1024,
    connections: 2 * config.EOD_CONCURRENCY,
    tlsVerify: config.EOD_TLS_VERIFY,
    proxies: config,
  };
}
