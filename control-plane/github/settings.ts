/** How the operator connected this server to GitHub, or to a GitHub Enterprise server. */
export interface GithubSettings {
  /** Of the REST API, without a slash at its end. */
  apiUrl: string
  auth: { kind: 'token'; token: string } | { kind: 'app'; appId: string; keyFile: string } | null
  /** Deliveries are signed with it; null: none are taken. */
  webhookSecret: string | null
}

/** Triggers need both: events that come in, and reading what they are about. */
export const isInstalled = (settings: GithubSettings): boolean =>
  settings.auth !== null && settings.webhookSecret !== null

/** The host of repositories' addresses: `github.com` for `api.github.com`; an Enterprise server is its own. */
export function repositoryHost(apiUrl: string): string {
  const { hostname } = new URL(apiUrl)
  return hostname.startsWith('api.') ? hostname.slice('api.'.length) : hostname
}
