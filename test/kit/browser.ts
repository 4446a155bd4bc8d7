// Shares what a browser does with the server's pages: keeps cookies, follows where it is sent, fills in and sends forms. It imports nothing, so that it
// can be started elsewhere (box-approve.ts).

export interface Page {
  status: number
  headers: Headers
  /** Says where it was sent on to; null: nowhere. */
  location: string | null
  text: string
  /** Hidden fields of the page's form, by name. */
  fields: Record<string, string>
}

export interface Visit {
  method?: string
  /** Sent as a form. */
  form?: Record<string, string> | string
  headers?: Record<string, string>
}

export class Browser {
  readonly cookies = new Map<string, string>()
  readonly server: { url: string }

  constructor(server: { url: string }) {
    this.server = server
  }

  /** One request; `path` may be a whole address. */
  async visit(path: string, options: Visit = {}): Promise<Page> {
    const { form, headers } = options
    const url = new URL(path, this.server.url)
    const response = await fetch(url, {
      method: options.method ?? (form === undefined ? 'GET' : 'POST'),
      redirect: 'manual',
      headers: {
        ...(this.cookies.size === 0 ? {} : { cookie: this.cookieHeader }),
        ...(form === undefined
          ? {}
          : {
              'content-type': 'application/x-www-form-urlencoded',
              origin: url.origin,
              'sec-fetch-site': 'same-origin',
            }),
        ...headers,
      },
      ...(form === undefined ? {} : { body: typeof form === 'string' ? form : new URLSearchParams(form).toString() }),
    })
    for (const line of response.headers.getSetCookie()) this.keep(line)
    const text = await response.text()
    return {
      status: response.status,
      headers: response.headers,
      location: response.headers.get('location'),
      text,
      fields: fieldsOf(text),
    }
  }

  /** Sends the form of a page with what a person filled in. */
  send(page: Page, path: string, filled: Record<string, string> = {}): Promise<Page> {
    return this.visit(path, { form: { ...page.fields, ...filled } })
  }

  get cookieHeader(): string {
    return [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  }

  private keep(line: string): void {
    const [pair = ''] = line.split(';')
    const at = pair.indexOf('=')
    const [name, value] = [pair.slice(0, at), pair.slice(at + 1)]
    if (/max-age=0/i.test(line)) this.cookies.delete(name)
    else this.cookies.set(name, value)
  }
}

function fieldsOf(text: string): Record<string, string> {
  const inputs = text.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"\s*\/?>/g)
  return Object.fromEntries([...inputs].map((match) => [match[1]!, match[2]!]))
}

/** Opens a sign-in link and presses its button, where there is one. */
export async function useLink(browser: Browser, link: string): Promise<Page> {
  const page = await browser.visit(link)
  return page.status === 200 ? browser.send(page, '/sign-in/link') : page
}

/** Confirms the code of a `svc login` at the address that it shows, for the first workspace that is offered. */
export async function confirmCode(browser: Browser, address: string): Promise<void> {
  const form = await browser.visit(address)
  const code = new URL(address).searchParams.get('user_code')!
  const page = await browser.send(form, '/device', { code })
  const workspace = /<option value="([^"]+)"/.exec(page.text)![1]!
  const { status } = await browser.send(page, '/device/decision', { workspace, decision: 'approve' })
  if (status !== 200) throw new Error(`the code was not confirmed: ${status}`)
}
