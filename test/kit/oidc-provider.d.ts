/** As much of the package as tests use; it comes without types. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http'

  interface Interaction {
    uid: string
    prompt: { name: 'login' | 'consent'; details: { missingResourceScopes?: Record<string, string[]> } }
    params: { client_id: string; scope?: string }
    session?: { accountId: string }
  }
  interface Grant {
    addOIDCScope(scope: string): void
    addResourceScope(resource: string, scope: string): void
    save(): Promise<string>
  }
  export class Provider {
    constructor(issuer: string, configuration: Record<string, unknown>)
    readonly Grant: new (of: { accountId: string; clientId: string }) => Grant
    readonly AccessToken: { find(token: string): Promise<{ isExpired: boolean; aud?: string } | undefined> }
    callback(): (request: IncomingMessage, response: ServerResponse) => Promise<void>
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Interaction>
    interactionFinished(request: IncomingMessage, response: ServerResponse, result: object): Promise<void>
    on(event: string, listener: (...parameters: never[]) => void): void
  }
}
