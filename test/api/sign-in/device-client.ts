import { deviceFlow } from '../../../shared/api/auth-internal.ts'
import type { Browser, Page } from '../../kit/browser.ts'
import type { TestServer } from '../../kit/server.ts'

// The client's half of the device flow, by plain requests.

export interface OauthReply {
  status: number
  headers: Headers
  // Tests look into answers of all shapes.
  // oxlint-disable-next-line typescript/no-explicit-any
  body: any
}

export async function post(
  server: TestServer,
  path: string,
  fields: Record<string, string> | string,
  headers: Record<string, string> = {},
): Promise<OauthReply> {
  const response = await fetch(server.nextUrl() + path, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    body: typeof fields === 'string' ? fields : new URLSearchParams(fields).toString(),
  })
  return { status: response.status, headers: response.headers, body: JSON.parse(await response.text()) }
}

const client = { client_id: deviceFlow.clientId }

export const begin = (server: TestServer, name = 'laptop') =>
  post(server, deviceFlow.authorizePath, { ...client, client_name: name })

export const poll = (server: TestServer, deviceCode: string, changes: Record<string, string> = {}) =>
  post(server, deviceFlow.tokenPath, {
    ...client,
    grant_type: deviceFlow.grantType,
    device_code: deviceCode,
    ...changes,
  })

/** `400 authorization_pending` */
export const outcome = ({ status, body }: OauthReply): string => (status === 200 ? '200' : `${status} ${body.error}`)

/** Enters the code in a browser that is signed in; returns the page that asks for the decision. */
export async function enterCode(browser: Browser, code: string): Promise<Page> {
  return browser.send(await browser.visit('/device'), '/device', { code })
}

export async function decide(browser: Browser, code: string, decision: 'approve' | 'deny'): Promise<Page> {
  const page = await enterCode(browser, code)
  const workspace = /<option value="([^"]+)"/.exec(page.text)?.[1] ?? ''
  return browser.send(page, '/device/decision', { workspace, decision })
}
