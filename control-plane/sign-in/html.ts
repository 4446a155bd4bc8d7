import { createHash } from 'node:crypto'

/** HTML templates: inserted text is escaped unless it is HTML made here. */
export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

type Insert = Html | string | number | null | readonly Html[]

export function html(parts: TemplateStringsArray, ...inserts: readonly Insert[]): Html {
  return new Html(parts.map((part, at) => part + textOf(inserts[at] ?? null)).join(''))
}

function textOf(insert: Insert): string {
  if (insert === null) return ''
  if (insert instanceof Html) return insert.text
  if (typeof insert === 'object') return insert.map((one) => one.text).join('')
  return escapeHtml(String(insert))
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

export function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => entities[character]!)
}

const style = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 30rem; margin: 12vh auto 3rem; padding: 0 1.25rem }
h1 { font-size: 1.4rem }
label, dt { display: block; margin-top: 1rem; font-weight: 600 }
dd { margin: 0; overflow-wrap: anywhere }
input, select { font: inherit; width: 100%; box-sizing: border-box; padding: .5rem; margin-top: .25rem }
button, .button { font: inherit; display: inline-block; padding: .5rem 1.25rem; margin: 1.25rem .5rem 0 0; border: 1px solid;
  border-radius: .4rem; cursor: pointer; text-decoration: none; color: inherit; background: none }
.main { background: #1f6feb; border-color: #1f6feb; color: #fff }
.code { font: 600 1.6rem ui-monospace, monospace; letter-spacing: .1em }
.warning { border-left: 4px solid #d29922; padding-left: .75rem }
`

/**
 * The content policy of pages: they may only show themselves and send their own forms. `form-action` also covers
 * redirects of a form, so ways to other sites are links.
 */
export const pagePolicy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ')

export function page(title: string, body: Html): string {
  const sheet = new Html(`<style>${style}</style>`)
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width" />
        <title>${title} - svc</title>
        ${sheet}
      </head>
      <body>
        <main>
          <h1>${title}</h1>
          ${body}
        </main>
      </body>
    </html> `.text
}
