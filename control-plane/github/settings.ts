/** Says how the operator connected this server to GitHub, or to a GitHub Enterprise server. */
export interface GithubSettings {
  /** Address of the REST API, without a slash at its end. */
  apiUrl: string
  auth: { kind: 'token'; token: string } | { kind: 'app'; appId: string; keyFile: string } | null
  /** The key of the deliveries' signatures; null: no deliveries are accepted. */
  webhookSecret: string | null
}

/** Triggers need both: incoming events, and reading what they are about. */
export const isInstalled = (settings: GithubSettings): boolean =>
  settings.auth !== null && settings.webhookSecret !== null

/** The host of repositories' addresses: `github.com` for `api.github.com`, and an Enterprise server's own host. */
export function repositoryHost(apiUrl: string): string {
  const { hostname } = new URL(apiUrl)
  return hostname.startsWith('api.') ? hostname.slice('api.'.length) : hostname
}
