import { createLoginLink } from '../../control-plane/operator/login-link.ts'
import { Browser, useLink } from './browser.ts'
import type { TestServer } from './server.ts'

/** A link for a person, as the operator makes it. */
export async function makeLink(server: TestServer, email: string, workspace: string | null = null): Promise<string> {
  const input = { email, workspace, server: server.plane.localUrl }
  return (await server.database.root.transaction((tx) => createLoginLink(tx, server.world, input))).url
}

/** A browser in which the person is signed in. */
export async function signedIn(server: TestServer, email = server.owner.email): Promise<Browser> {
  const browser = new Browser(server)
  const page = await useLink(browser, await makeLink(server, email))
  if (page.status !== 303) throw new Error(`not signed in: ${page.status} ${page.text}`)
  return browser
}
