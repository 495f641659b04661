import { type Dispatcher, EnvHttpProxyAgent } from 'undici';
import type { Config } from './config.ts';

/** The settings that say which calls go through a proxy. */
export type ProxySettings = Partial<Pick<Config, 'HTTPS_PROXY' | 'HTTP_PROXY' | 'NO_PROXY'>>;

/** What runs on this machine, such as the sandbox, is never called through a proxy. */
const THIS_MACHINE = ['localhost', '127.0.0.1', '[::1]'];

interface DispatcherOptions {
  readonly timeoutMs: number;
  /** How many connections are kept open; default: any number. */
  readonly connections?: number;
  /** Whether the certificate of the called server is verified; that of a proxy always is. Default true. */
  readonly tlsVerify?: boolean;
}

/**
 * Makes HTTP calls directly or through a proxy, as the settings say. Close it to release its connections.
 *
 * @param proxies none: every call is direct, whatever the environment of the process says.
 */
export function createDispatcher(
  proxies: ProxySettings,
  { timeoutMs, connections, tlsVerify = true }: DispatcherOptions,
): Dispatcher {
  const { HTTPS_PROXY: httpsProxy = '', HTTP_PROXY: httpProxy = '', NO_PROXY: noProxy = [] } = proxies;
  const tls = { timeout: timeoutMs, rejectUnauthorized: tlsVerify };
  return new EnvHttpProxyAgent({
    httpsProxy,
    httpProxy,
    noProxy: noProxy.includes('*') ? '*' : [...noProxy, ...THIS_MACHINE].join(','),
    // Proxies let CONNECT through for TLS only, so addresses with http:// are requested from the proxy itself.
    proxyTunnel: false,
    ...(connections === undefined ? {} : { connections }),
    pipelining: 1,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    connect: tls,
    requestTls: tls,
    proxyTls: { timeout: timeoutMs },
  });
}
