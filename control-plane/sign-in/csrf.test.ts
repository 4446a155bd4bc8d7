import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isOwnSender } from '../http/sender.ts'
import { csrfToken, isCsrfToken, isSame } from './csrf.ts'
import { escapeHtml, html, page, pagePolicy } from './html.ts'
import { ownPath } from './paths.ts'

test('the token of a form belongs to one cookie and does not reveal it', () => {
  const token = csrfToken('cookie')
  expect(isCsrfToken('cookie', token)).toBe(true)
  expect(isCsrfToken('cookie', `${token} `)).toBe(false)
  expect(isCsrfToken('other', token)).toBe(false)
  expect(isCsrfToken('cookie', '')).toBe(false)
  expect(token).not.toContain('cookie')
  expect([isSame('a', 'a'), isSame('a', 'b'), isSame('a', 'aa'), isSame('', '')]).toEqual([true, false, false, true])
})

test('a request is accepted from this site’s own pages, or from a client that is no browser', () => {
  const hosts = ['svc.example.com', '127.0.0.1:4400']
  const isOwn = (origin?: string, secFetchSite?: string) => isOwnSender({ origin, secFetchSite, hosts })
  expect(isOwn('https://svc.example.com')).toBe(true)
  expect(isOwn('http://127.0.0.1:4400')).toBe(true)
  for (const origin of ['http://127.0.0.1', 'null', '', 'svc.example.com', 'https://svc.example.com.evil.example'])
    expect(isOwn(origin)).toBe(false)
  expect([isOwn(), isOwn(undefined, 'none'), isOwn(undefined, 'same-origin')]).toEqual([true, true, true])
  expect([isOwn(undefined, 'cross-site'), isOwn(undefined, 'same-site')]).toEqual([false, false])
})

test('text that is inserted into a page stays text', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      const shown = html`<p title="${text}">${text}</p>`.text
      expect(shown).toBe(`<p title="${escapeHtml(text)}">${escapeHtml(text)}</p>`)
      expect(escapeHtml(text)).not.toMatch(/[<>"']|&(?!amp;|lt;|gt;|quot;|#39;)/)
    }),
  )
  expect(html`${null}${3}${[html`<b>${'<'}</b>`, html`x`]}`.text).toBe('3<b>&lt;</b>x')
})

test('the style of a page is allowed by its content security policy', async () => {
  const style = /<style>([^]*)<\/style>/.exec(page('t', html``))![1]!
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(style))
  expect(pagePolicy).toContain(`'sha256-${Buffer.from(digest).toString('base64')}'`)
})

test('a redirect target is a path of this server', () => {
  for (const path of ['/device?user_code=A-B', '/', '/a/b?c=d%2F%2Fe']) expect(ownPath(path)).toBe(path)
  for (const path of [
    '',
    'a',
    '//evil',
    '/\\evil',
    '/\n/evil',
    '/ /evil',
    'https://evil',
    '/a/..//evil',
    '/é',
    `/${'a'.repeat(3000)}`,
  ])
    expect(ownPath(path)).toBeNull()
  fc.assert(
    fc.property(fc.string(), (text) => {
      const own = ownPath(text)
      if (own !== null) expect(new URL(own, 'https://svc.example.com').origin).toBe('https://svc.example.com')
    }),
  )
})
