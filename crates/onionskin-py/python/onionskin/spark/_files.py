"""Small files beside the tables: the manifest, and marks that a step is whole.

Spark reads and writes tables wherever it can reach; a single small file under a name of our own it cannot. On a local or mounted folder that is
plain Python, elsewhere Hadoop's file system through the driver, and over Spark Connect, where there is no driver to ask, `fsspec`.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def local_path(path: str) -> str | None:
    """The path of a folder that Python sees itself; `None` for other stores."""
    if path.startswith("file:"):
        # As Hadoop takes it: nothing in it is escaped, and no sign ends it.
        rest = path.removeprefix("file:")
        return "/" + rest.lstrip("/") if rest.startswith("/") else rest
    return None if "://" in path else path


class Files:
    """Reads, writes and removes files of a store."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self.root = root.rstrip("/") or "/"
        if any(sign in self.root for sign in "*?[]{}"):
            raise ValueError(f"{root}: Spark takes * ? [ ] {{ }} in a path for a pattern; an atlas needs a name without them")
        self._local = local_path(self.root)
        self._hadoop: Any = None
        self._fsspec: Any = None
        if self._local is not None:
            return
        jvm = getattr(spark, "_jvm", None)
        if jvm is not None:
            self._jvm = jvm
            place = jvm.org.apache.hadoop.fs.Path(self.root)
            self._hadoop = place.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
            return
        try:
            import fsspec
        except ImportError as error:
            raise ValueError(
                f"{self.root}: over Spark Connect, a store other than a mounted folder needs the package fsspec for the manifest"
            ) from error
        self._fsspec = fsspec.core.url_to_fs(self.root)[0]

    def path(self, name: str) -> str:
        """The address of a file or folder below the root, as Spark takes it."""
        if self._local is not None:
            return "file://" + os.path.join(os.path.abspath(self._local), name)
        return f"{self.root}/{name}"

    def _own(self, name: str) -> str:
        return os.path.join(self._local, name) if self._local is not None else f"{self.root}/{name}"

    def listed(self, folders: list[str], ending: str) -> list[str] | None:
        """The files of folders, with their paths; `None` where Python does not see them."""
        if self._local is None:
            return None
        root = os.path.abspath(self._local)
        return [
            os.path.join(root, folder, name)
            for folder in folders
            for name in sorted(os.listdir(os.path.join(root, folder)))
            if name.endswith(ending) and not name.startswith((".", "_"))
        ]

    def exists(self, name: str) -> bool:
        path = self._own(name)
        if self._local is not None:
            return os.path.exists(path)
        if self._hadoop is not None:
            return bool(self._hadoop.exists(self._jvm.org.apache.hadoop.fs.Path(path)))
        return bool(self._fsspec.exists(path))

    def read(self, name: str) -> str:
        path = self._own(name)
        if self._local is not None:
            with open(path, encoding="utf-8") as file:
                return file.read()
        if self._hadoop is not None:
            stream = self._hadoop.open(self._jvm.org.apache.hadoop.fs.Path(path))
            try:
                return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
            finally:
                stream.close()
        with self._fsspec.open(path, "r", encoding="utf-8") as file:
            return str(file.read())

    def write(self, name: str, text: str) -> None:
        """Puts a file in place: whole where it is, or not at all where the store can rename."""
        path = self._own(name)
        if self._local is not None:
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            with open(path + ".new", "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(path + ".new", path)
        elif self._hadoop is not None:
            place = self._jvm.org.apache.hadoop.fs.Path
            stream = self._hadoop.create(place(path + ".new"), True)
            try:
                stream.write(bytearray(text.encode("utf-8")))
            finally:
                stream.close()
            # Stores differ in whether they rename onto a file that is there.
            self._hadoop.delete(place(path), False)
            if not self._hadoop.rename(place(path + ".new"), place(path)):
                raise OSError(f"{path}.new could not be renamed")
        else:
            with self._fsspec.open(path, "w", encoding="utf-8") as file:
                file.write(text)

    def remove(self, name: str) -> None:
        """Removes a file or a folder with all that is in it; nothing happens when there is none."""
        path = self._own(name)
        if self._local is not None:
            if os.path.isdir(path):
                shutil.rmtree(path)
            elif os.path.exists(path):
                os.remove(path)
        elif self._hadoop is not None:
            self._hadoop.delete(self._jvm.org.apache.hadoop.fs.Path(path), True)
        elif self._fsspec.exists(path):
            self._fsspec.rm(path, recursive=True)
