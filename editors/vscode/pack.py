#!/usr/bin/env python3
"""pack.py FOLDER FILE: make a .vsix of an extension's folder: package.json, README.md, LICENSE, media, walkthrough, out.

A .vsix is a zip with the extension below extension/, a manifest in XML that repeats package.json, and the types of its
files (docs: VS Code, "Publishing Extensions"; Open Packaging Conventions for [Content_Types].xml).  The same input gives the same bytes.
"""

import json
import os
import sys
import zipfile
from xml.sax.saxutils import escape, quoteattr

KEPT = ("package.json", "README.md", "LICENSE", "media", "walkthrough", "out")
LEFT_OUT = (".svg", ".map")
TYPES = {"json": "application/json", "md": "text/markdown", "js": "application/javascript", "css": "text/css", "png": "image/png",
         "py": "text/plain", "txt": "text/plain", "vsixmanifest": "text/xml"}
MANIFEST = """<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
  <Metadata>
    <Identity Language="en-US" Id={name} Version={version} Publisher={publisher}/>
    <DisplayName>{displayName}</DisplayName>
    <Description xml:space="preserve">{description}</Description>
    <Tags>{tags}</Tags>
    <Categories>{categories}</Categories>
    <Properties>
      <Property Id="Microsoft.VisualStudio.Code.Engine" Value={engine}/>
      <Property Id="Microsoft.VisualStudio.Code.ExtensionKind" Value="workspace"/>
    </Properties>
    <License>extension/LICENSE.txt</License>
    <Icon>extension/{icon}</Icon>
  </Metadata>
  <Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>
  <Dependencies/>
  <Assets>
    <Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json" Addressable="true"/>
    <Asset Type="Microsoft.VisualStudio.Services.Content.Details" Path="extension/README.md" Addressable="true"/>
    <Asset Type="Microsoft.VisualStudio.Services.Content.License" Path="extension/LICENSE.txt" Addressable="true"/>
    <Asset Type="Microsoft.VisualStudio.Services.Icons.Default" Path="extension/{icon}" Addressable="true"/>
  </Assets>
</PackageManifest>
"""


def manifest(about):
    """As an XML text."""
    return MANIFEST.format(
        name=quoteattr(about["name"]), version=quoteattr(about["version"]), publisher=quoteattr(about["publisher"]),
        engine=quoteattr(about["engines"]["vscode"]), displayName=escape(about["displayName"]),
        description=escape(about["description"]), tags=escape(",".join(about["keywords"])),
        categories=escape(",".join(about["categories"])), icon=escape(about["icon"]))


def content_types():
    lines = "".join('<Default Extension=".{}" ContentType="{}"/>'.format(*one) for one in sorted(TYPES.items()))
    return ('<?xml version="1.0" encoding="utf-8"?>\n<Types xmlns="http://schemas.openxmlformats.org/package/2006/'
            'content-types">' + lines + "</Types>\n")


def files(folder):
    """(name in the package, bytes) of what is kept."""
    for kept in KEPT:
        top = os.path.join(folder, kept)
        found = [top] if os.path.isfile(top) else [os.path.join(at, name) for at, _, names in os.walk(top) for name in names]
        for path in sorted(found):
            if not path.endswith(LEFT_OUT):
                name = os.path.relpath(path, folder)
                with open(path, "rb") as content:
                    yield "extension/" + ("LICENSE.txt" if name == "LICENSE" else name), content.read()


def pack(folder, out):
    with open(os.path.join(folder, "package.json"), encoding="utf-8") as text:
        about = json.load(text)
    parts = [("extension.vsixmanifest", manifest(about).encode()), ("[Content_Types].xml", content_types().encode())]
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as package:
        for name, content in parts + list(files(folder)):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            package.writestr(entry, content)


if __name__ == "__main__":
    pack(*sys.argv[1:])
