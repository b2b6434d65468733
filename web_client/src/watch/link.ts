/** The link by which others watch: what it needs is in the fragment, which no server ever sees. */
import type { Credentials } from "../session/api";

const FORM = /^#watch=([0-9a-z]+)\.([0-9a-f]+)$/;

export function watchLink(page: string, { id, token }: Credentials): string {
  return `${page.replace(/[?#].*$/, "")}#watch=${id}.${token}`;
}

/** @returns the session and the watch token; null where this is no such link. */
export function watchedBy(hash: string): Credentials | null {
  const [, id, token] = FORM.exec(hash) ?? [];
  return id === undefined || token === undefined ? null : { id, token };
}
