import { Browser, confirmCode, useLink } from './browser.ts'

// The browser of a person on a box: opens a sign-in link, and confirms the code at the address that `svc login` shows.
// node box-approve.ts LINK ADDRESS

const [link, address] = process.argv.slice(2) as [string, string]
const browser = new Browser({ url: new URL(link).origin })
await useLink(browser, link)
await confirmCode(browser, address)
